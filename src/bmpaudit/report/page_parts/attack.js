// ROC and performance of each variant of the attack.
import {addChart, axis, forPlotly, layoutOf, OKABE_ITO} from './charts.js';
import {byId, element, headings, numberCell} from './dom.js';
import {formatFixed, formatPercent} from './format.js';
import {data} from './state.js';
import {smallest} from './statistics.js';

function rocFigure(isLog) {
  const curves = data.variants.filter((variant) => variant.roc?.fpr?.length);
  if (!curves.length) return {empty: 'No ROC in this audit.'};
  const traces = curves.map((variant, index) => {
    // A logarithmic axis has no place for 0.
    const kept = variant.roc.fpr
      .map((_, place) => place)
      .filter((place) => !isLog || (variant.roc.fpr[place] > 0 && variant.roc.tpr[place] > 0));
    return {
      x: kept.map((place) => variant.roc.fpr[place]),
      y: kept.map((place) => variant.roc.tpr[place]),
      name: forPlotly(variant.label),
      mode: 'lines',
      line: {color: OKABE_ITO[index % OKABE_ITO.length], width: index ? 1.5 : 2.5},
      hovertemplate: 'FPR %{x:.4g}, TPR %{y:.4g}<extra></extra>',
    };
  });
  const positive = traces.flatMap((trace) => trace.x).filter((x) => x > 0);
  const least = Math.max(smallest(positive), 1e-5);
  const guess = isLog ? [least, 1] : [0, 1];
  const scale = isLog
    ? {type: 'log', range: [Math.log10(least), 0.02], dtick: 1, exponentformat: 'power'}
    : {range: [-0.02, 1.02], dtick: 0.2};
  const highest = isLog
    ? {...scale, range: [Math.min(Math.log10(least), Math.log10(smallest(traces.flatMap((trace) => trace.y)))), 0.05]}
    : scale;
  return {
    traces: [
      ...traces,
      {
        x: guess,
        y: guess,
        name: 'guessing',
        mode: 'lines',
        line: {dash: 'dash', color: '#56606b', width: 1},
        hoverinfo: 'skip',
      },
    ],
    layout: layoutOf({
      showlegend: !isLog,
      legend: {
        orientation: 'v',
        x: 0.98,
        xanchor: 'right',
        y: 0.02,
        yanchor: 'bottom',
        bgcolor: '#ffffffc0',
        font: {size: 11},
      },
      xaxis: axis('false-positive rate', scale),
      yaxis: axis('true-positive rate', highest),
    }),
  };
}

export function show() {
  addChart('chart-roc', 'ROC of the attack', () => rocFigure(false));
  addChart('chart-roc-log', 'ROC of the attack, logarithmic axes', () => rocFigure(true));
  const levels = [...new Set(data.variants.flatMap((variant) => Object.keys(variant.tpr_at_fpr ?? {})))].sort(
    (a, b) => a - b,
  );
  const rows = data.variants.map((variant) =>
    element(
      'tr',
      {},
      element('th', {scope: 'row', class: 'name'}, variant.label),
      numberCell(formatFixed(variant.auc, 3)),
      numberCell(formatPercent(variant.accuracy, 1)),
      ...levels.map((level) => numberCell(formatPercent(variant.tpr_at_fpr?.[level], 2))),
    ),
  );
  byId('variant-table').replaceChildren(
    headings([
      'Attack variant',
      'AUC',
      'Accuracy',
      ...levels.map(
        (level) => `TPR at FPR ${formatPercent(Number(level), Number(level) < 0.01 ? 1 : 0).replace(' ', '\u00a0')}`,
      ),
    ]),
    element('tbody', {}, ...rows),
  );
}
