// Posterior and prior densities of the chosen definitions and attack variants.
import {addChart, axis, drawChart, layoutOf, line, OKABE_ITO, plotlySymbol} from './charts.js';
import {byId, element, headings, numberCell, withSubscripts} from './dom.js';
import {formatFixed, isNumber} from './format.js';
import {data, variantLabel} from './state.js';

function choices(place, options, chosen, whenChosen) {
  place.replaceChildren(
    ...options.map(([value, label]) => {
      const box = element('input', {type: 'checkbox', value});
      box.checked = chosen.has(value);
      box.addEventListener('change', () => {
        if (box.checked) chosen.add(value);
        else chosen.delete(value);
        whenChosen();
      });
      return element('label', {class: 'name'}, box, ' ', ...withSubscripts(label));
    }),
  );
}

export function show() {
  const posteriors = data.posteriors ?? [];
  const keyOf = (posterior) => `${posterior.definition}/${posterior.parameter}`;
  const definitions = [...new Map(posteriors.map((posterior) => [keyOf(posterior), posterior.symbol])).entries()];
  const variants = [...new Set(posteriors.map((posterior) => posterior.variant))];
  const ofHeadline = new Set(data.headline.map(keyOf));
  const usual = definitions.map(([key]) => key).filter((key) => ofHeadline.has(key));
  const chosenDefinitions = new Set(usual.length ? usual : definitions.map(([key]) => key));
  const chosenVariants = new Set(variants.slice(0, 1));
  const chosen = () =>
    posteriors.filter((posterior) => chosenDefinitions.has(keyOf(posterior)) && chosenVariants.has(posterior.variant));
  const nameOf = (posterior) =>
    chosenVariants.size > 1 ? `${posterior.symbol}, ${variantLabel(posterior.variant)}` : posterior.symbol;

  const chart = addChart('chart-posteriors', 'Posterior densities of ε', () => {
    const shown = chosen();
    if (!shown.length)
      return {empty: posteriors.length ? 'Choose a definition and an attack variant.' : 'No posterior in this audit.'};
    const traces = shown.flatMap((posterior, index) => {
      const colour = OKABE_ITO[index % OKABE_ITO.length];
      // Colours that come again are told apart by the width.
      const width = index < OKABE_ITO.length ? 2 : 4;
      const name = plotlySymbol(nameOf(posterior));
      const hovertemplate = `ε = %{x:.2f}, density %{y:.3f}<extra></extra>`;
      return [
        {x: posterior.x, y: posterior.density, name, mode: 'lines', line: {color: colour, width}, hovertemplate},
        {
          x: posterior.x,
          y: posterior.prior_density,
          showlegend: false,
          mode: 'lines',
          line: {color: colour, width: 1.2, dash: 'dash'},
          hoverinfo: 'skip',
        },
      ];
    });
    // What is proven is about the main release; below the floor it says nothing.
    const marks = data.headline
      .filter(
        (row) => isNumber(row.proven) && row.proven > (row.floor ?? -Infinity) && chosenDefinitions.has(keyOf(row)),
      )
      .map((row) => [row.proven, OKABE_ITO[shown.findIndex((posterior) => keyOf(posterior) === keyOf(row))]])
      .filter(([, colour]) => colour);
    return {
      traces,
      layout: layoutOf({
        shapes: marks.map(([proven, colour]) =>
          line(proven, 0, proven, 1, {yref: 'paper', line: {dash: 'dot', width: 2, color: colour}}),
        ),
        xaxis: axis('ε (natural logarithm of odds)'),
        yaxis: axis('density per unit of ε', {rangemode: 'tozero'}),
        showlegend: true,
      }),
    };
  });
  const showTable = () => {
    const rows = chosen().map((posterior) =>
      element(
        'tr',
        {},
        element('th', {scope: 'row', class: 'name'}, ...withSubscripts(posterior.symbol)),
        element('td', {class: 'name'}, variantLabel(posterior.variant)),
        ...['p5', 'p50', 'p95', 'mean'].map((key) => numberCell(formatFixed(posterior[key]))),
        element('td', {}, posterior.status ?? ''),
      ),
    );
    const head = headings(['Parameter', 'Variant', '5 %', 'Median', '95 %', 'Mean', 'Status']);
    [1, 6].forEach((index) => head.querySelectorAll('th')[index].classList.remove('number'));
    byId('posterior-table').replaceChildren(head, element('tbody', {}, ...rows));
  };
  const update = () => {
    drawChart(chart);
    showTable();
  };
  choices(byId('posterior-definitions'), definitions, chosenDefinitions, update);
  choices(
    byId('posterior-variants'),
    variants.map((id) => [id, variantLabel(id)]),
    chosenVariants,
    update,
  );
  showTable();
}
