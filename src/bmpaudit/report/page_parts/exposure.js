// How many nodes of one released model can be named, against how sure the adversary wants to be.
import {addChart, axis, drawChart, forPlotly, layoutOf, OKABE_ITO} from './charts.js';
import {byId} from './dom.js';
import {formatCount, formatFixed, formatInterval, formatPercent} from './format.js';
import {data} from './state.js';
import {largest, smallest} from './statistics.js';

const LOG_FROM = 30; // ratio of the largest to the smallest number from which on a logarithmic axis shows more

export const logit = (share) => Math.log(share / (1 - share));

const column = (curve, name) => curve.map((row) => row[name]);

function hoverOf(release, total, row) {
  return [
    `<b>${forPlotly(release.name)}</b>, ${formatPercent(row.precision, 1)} certainty`,
    `${formatFixed(row.correct, 1)} named correctly (${formatInterval(row.correct_low, row.correct_high, 1)})`,
    `of ${formatCount(total)}; ${formatPercent(row.share_correct, 1)} of the names are right`,
    ...(row.is_settled ? [] : ['too few models: more would narrow it down']),
  ].join('<br>');
}

function tracesOf(release, side, index, isLog) {
  const curve = release.exposure[side];
  const colour = OKABE_ITO[index % OKABE_ITO.length];
  const total = release.exposure[`total_${side}`];
  const x = column(curve, 'precision').map(logit);
  // A logarithmic axis has no place for 0.
  const drawable = (value) => (isLog && !(value > 0) ? null : value);
  const least = isLog ? smallest(column(curve, 'correct').filter((value) => value > 0)) / 10 : 0;
  const edge = {mode: 'lines', line: {width: 0}, showlegend: false, hoverinfo: 'skip'};
  return [
    {...edge, x, y: column(curve, 'correct_low').map((value) => (isLog ? Math.max(value, least) : value))},
    {
      ...edge,
      x,
      y: column(curve, 'correct_high').map((value) => (isLog ? Math.max(value, least) : value)),
      fill: 'tonexty',
      fillcolor: `${colour}33`,
    },
    {
      x,
      y: column(curve, 'correct').map(drawable),
      name: forPlotly(release.name),
      mode: 'lines+markers',
      line: {color: colour, width: index ? 2 : 2.5},
      marker: {
        size: 8,
        color: column(curve, 'is_settled').map((isSettled) => (isSettled ? colour : '#fff')),
        line: {color: colour, width: 1.5},
      },
      text: curve.map((row) => hoverOf(release, total, row)),
      hoverinfo: 'text',
    },
  ];
}

export function show() {
  const [sideSelect, scaleSelect] = [byId('exposure-side'), byId('exposure-scale')];
  const curvesOf = (side) => data.releases.map((release) => release.exposure[side]);
  const helpsLog = (side) => {
    const positive = curvesOf(side)
      .flatMap((curve) => column(curve, 'correct'))
      .filter((value) => value > 0);
    return positive.length > 0 && largest(positive) > LOG_FROM * smallest(positive);
  };
  const chart = addChart('chart-exposure', 'Nodes named per released model against certainty', () => {
    const side = sideSelect.value;
    const curves = curvesOf(side);
    if (!curves.length) return {empty: 'No release in this audit.'};
    const named = curves.flatMap((curve) => column(curve, 'correct'));
    const noun = side === 'members' ? 'members' : 'non-members';
    const isLog = scaleSelect.value === 'log' && largest(named) > 0;
    const [first] = curves;
    const [certainties, byPrior] = [column(first, 'precision'), column(first, 'by_prior')];
    const reference = {
      x: certainties.map(logit),
      y: byPrior.map((value) => (isLog && !(value > 0) ? null : value)),
      name: 'sampling alone, no model',
      mode: 'lines+markers',
      line: {color: '#56606b', width: 1.5, dash: 'dot'},
      marker: {size: 6, symbol: 'x-thin-open', line: {width: 1.5}},
      hovertemplate: '%{y:.1f} named without any model<extra></extra>',
    };
    const low = smallest(named.filter((value) => value > 0));
    return {
      traces: [
        ...data.releases.flatMap((release, index) => tracesOf(release, side, index, isLog)),
        ...(largest(byPrior) > 0 ? [reference] : []),
      ],
      layout: layoutOf({
        showlegend: true,
        legend: {orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0, traceorder: 'normal'},
        uirevision: `${side}/${scaleSelect.value}`,
        xaxis: axis('certainty of each name [%], on a scale of log-odds', {
          tickvals: certainties.map(logit),
          ticktext: certainties.map((share) => String(Number((100 * share).toFixed(2)))),
          tickangle: 0,
          range: [logit(certainties[0]) - 0.3, logit(certainties.at(-1)) + 0.4],
        }),
        yaxis: axis(
          `${noun} named per model`,
          isLog
            ? {
                type: 'log',
                range: [Math.log10(low) - 0.3, Math.log10(largest(named)) + 0.2],
                tickformat: ',~g',
                nticks: 6,
              }
            : {rangemode: 'tozero'},
        ),
      }),
    };
  });
  const chooseScale = () => {
    scaleSelect.value = helpsLog(sideSelect.value) ? 'log' : 'linear';
  };
  chooseScale();
  sideSelect.addEventListener('change', () => {
    chooseScale();
    drawChart(chart);
  });
  scaleSelect.addEventListener('change', () => drawChart(chart));
}
