// The regions R_η(ε_L, ε_R) of Theorem 6, and the error rates that were observed.
import {addChart, axis, drawChart, forPlotly, layoutOf, OKABE_ITO} from './charts.js';
import {byId, element, headings, numberCell} from './dom.js';
import {formatCount, formatSignificant, isNumber, shorten} from './format.js';
import {nodeButton} from './navigation.js';
import {data, inWords, nodes, state, toggleKept, whenChanged} from './state.js';
import {betaQuantile, quantile, regionCorners} from './statistics.js';

function medianPair() {
  const joint = data.joint?.[0];
  if (joint?.left.length) return {left: quantile(joint.left, 0.5), right: quantile(joint.right, 0.5)};
  const medianOf = (parameter) => data.posteriors.find((one) => one.parameter === parameter)?.p50 ?? null;
  return {left: medianOf('epsilon_left'), right: medianOf('epsilon_right')};
}

// Posterior interval of an error rate under a flat prior.
function rateInterval(errors, trials) {
  const tail = (1 - data.leakage_level) / 2;
  return [betaQuantile(tail, errors + 1, trials - errors + 1), betaQuantile(1 - tail, errors + 1, trials - errors + 1)];
}

function regionTraces(position, colour, left, right) {
  const name = forPlotly(shorten(nodes.name[position], 24));
  const gamma = nodes.prior_prob[position];
  const corners = isNumber(left) && isNumber(right) ? regionCorners(gamma / (1 - gamma), left, right) : null;
  const [trials0, trials1, errors0, errors1] = [
    nodes.num_out[position],
    nodes.num_in[position],
    nodes.false_positives[position],
    nodes.false_negatives[position],
  ];
  const traces = [];
  if (corners) {
    const closed = [...corners, corners[0]];
    traces.push({
      x: closed.map(([x]) => x),
      y: closed.map(([, y]) => y),
      mode: 'lines',
      fill: 'toself',
      fillcolor: `${colour}1a`,
      line: {color: colour, width: 1.5},
      hoverinfo: 'skip',
      showlegend: false,
    });
  }
  if (isNumber(errors0) && isNumber(errors1) && trials0 > 0 && trials1 > 0) {
    const spread = (errors, trials) => {
      const rate = errors / trials;
      const [low, high] = rateInterval(errors, trials);
      return {
        type: 'data',
        symmetric: false,
        array: [Math.max(0, high - rate)],
        arrayminus: [Math.max(0, rate - low)],
        color: colour,
        thickness: 1.5,
        width: 4,
      };
    };
    traces.push({
      x: [errors0 / trials0],
      y: [errors1 / trials1],
      error_x: spread(errors0, trials0),
      error_y: spread(errors1, trials1),
      name,
      mode: 'markers',
      marker: {color: colour, size: 9},
      customdata: [position],
      hoverinfo: 'text',
      text: [
        `<b>${name}</b><br>α ${formatSignificant(errors0 / trials0)} (${errors0} of ${trials0})<br>β ${formatSignificant(errors1 / trials1)} (${errors1} of ${trials1})`,
      ],
    });
  } else if (corners) {
    traces.at(-1).name = name;
    traces.at(-1).showlegend = true;
  }
  return {traces, hasRegion: Boolean(corners)};
}

// What a guarantee of the model allows the error rates of any node to be.
function guaranteeTraces() {
  if (!data.guarantee) return [];
  const closed = [...data.guarantee.corners, data.guarantee.corners[0]];
  return [
    {
      x: closed.map(([x]) => x),
      y: closed.map(([, y]) => y),
      mode: 'lines',
      name: `guaranteed by ${forPlotly(shorten(data.guarantee.mechanism, 24))}`,
      line: {dash: 'dot', color: '#1c7a4f', width: 2},
      hoverinfo: 'skip',
    },
  ];
}

export function show() {
  const medians = medianPair();
  const [leftInput, rightInput] = [byId('region-left'), byId('region-right')];
  const reset = () => {
    leftInput.value = isNumber(medians.left) ? medians.left.toFixed(2) : '';
    rightInput.value = isNumber(medians.right) ? medians.right.toFixed(2) : '';
  };
  const epsilon = (input) => (input.value === '' ? null : Number(input.value));
  const chosen = () => [...new Set([...state.kept, ...(state.selected === null ? [] : [state.selected])])];
  const colourOf = (index) => OKABE_ITO[index % OKABE_ITO.length];

  const chart = addChart('chart-regions', 'Regions of error rates of the chosen nodes', () => {
    const shown = chosen();
    if (!shown.length) return {empty: 'Select a node to see its region.'};
    const traces = shown.flatMap(
      (position, index) => regionTraces(position, colourOf(index), epsilon(leftInput), epsilon(rightInput)).traces,
    );
    const rate = (title, more) => axis(title, {range: [-0.03, 1.03], dtick: 0.2, ...more});
    return {
      traces: [
        {
          x: [0, 1],
          y: [1, 0],
          mode: 'lines',
          name: 'guessing',
          line: {dash: 'dash', color: '#56606b', width: 1},
          hoverinfo: 'skip',
        },
        ...guaranteeTraces(),
        ...traces,
      ],
      layout: layoutOf({
        showlegend: true,
        xaxis: rate('false-positive rate α', {constrain: 'domain'}),
        yaxis: rate('false-negative rate β', {scaleanchor: 'x', constrain: 'domain'}),
      }),
    };
  });
  const showCounts = () => {
    const shown = chosen();
    const messages = [];
    const rows = shown.map((position, index) => {
      const {hasRegion} = regionTraces(position, colourOf(index), epsilon(leftInput), epsilon(rightInput));
      const name = shorten(nodes.name[position], 24);
      if (!hasRegion)
        messages.push(`${name}: no region at these ε: its prior alone excludes them, or one of them is not given.`);
      if (!isNumber(nodes.false_positives[position]))
        messages.push(`${name}: not audited, so there are no rates to show.`);
      const swatch = element('span', {class: 'swatch'});
      swatch.style.background = colourOf(index);
      const drop = state.kept.includes(position)
        ? element('button', {type: 'button', 'aria-label': `Drop ${name}`, onclick: () => toggleKept(position)}, '×')
        : '';
      const gamma = nodes.prior_prob[position];
      return element(
        'tr',
        {},
        element('th', {scope: 'row', class: 'name'}, swatch, nodeButton(position)),
        numberCell(formatSignificant(gamma / (1 - gamma))),
        numberCell(`${formatCount(nodes.false_positives[position])} of ${formatCount(nodes.num_out[position])}`),
        numberCell(`${formatCount(nodes.false_negatives[position])} of ${formatCount(nodes.num_in[position])}`),
        element('td', {}, drop),
      );
    });
    byId('region-table').replaceChildren(
      headings([inWords('Node'), 'Prior odds η', 'False positives', 'False negatives', '']),
      element('tbody', {}, ...rows),
    );
    byId('region-messages').replaceChildren(...messages.map((message) => element('li', {}, message)));
    const pin = byId('region-pin');
    pin.disabled = state.selected === null || (!state.kept.includes(state.selected) && state.kept.length >= 7);
    pin.textContent = state.kept.includes(state.selected)
      ? inWords('Drop selected node')
      : inWords('Keep selected node');
  };
  const update = () => {
    drawChart(chart);
    showCounts();
  };
  reset();
  [leftInput, rightInput].forEach((input) => input.addEventListener('input', update));
  byId('region-reset').addEventListener('click', () => {
    reset();
    update();
  });
  byId('region-pin').addEventListener('click', () => toggleKept(state.selected));
  whenChanged('select', update);
  whenChanged('kept', update);
  showCounts();
}
