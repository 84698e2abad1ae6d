// The real audit beside audits whose memberships were permuted between models.
function nullStrip(title, real, permuted) {
  const drawn = (permuted ?? []).filter(isNumber);
  if (!drawn.length || !isNumber(real)) return {empty: 'Not computed.'};
  const strip = (x, y, name, marker) => ({x, y, name, mode: 'markers', marker, hovertemplate: `%{x:.3g}<extra>${name}</extra>`});
  return {
    traces: [
      strip(drawn, drawn.map(() => 0), `permuted (${drawn.length})`, {symbol: 'line-ns-open', size: 18, color: '#56606b', line: {width: 2}}),
      strip([real], [0], 'this audit', {symbol: 'diamond', size: 13, color: SELECTED_COLOUR}),
    ],
    layout: layoutOf({margin: {l: 14, r: 14, t: 30, b: 45}, xaxis: axis(title, {rangemode: 'tozero'}),
      yaxis: {visible: false, range: [-1, 1], fixedrange: true}}),
  };
}

function showNullControl() {
  const control = data.null_control;
  byId('null-sentence').replaceChildren(...withSubscripts(control ? control.sentence : 'No null control was run.'));
  if (!control) {
    byId('null-charts').remove();
    return;
  }
  byId('null-sentence').classList.toggle('notice', !control.is_leakage_found);
  addChart('chart-null-statistic', 'Statistic of the null control', () =>
    nullStrip('mean over nodes of |A/n<sub>0</sub> + B/n<sub>1</sub> − 1|', control.statistic, control.null_statistics));
  addChart('chart-null-median', 'Posterior medians of the null control', () =>
    nullStrip('posterior median of ε<sub>R</sub>', control.real_p50, control.null_p50));
}
