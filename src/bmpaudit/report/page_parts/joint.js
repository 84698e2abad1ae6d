// Draws of (ε_L, ε_R) with their marginals.
import {addChart, axis, drawChart, layoutOf, line, OKABE_ITO} from './charts.js';
import {byId, fillOptions} from './dom.js';
import {data, variantLabel} from './state.js';
import {quantile} from './statistics.js';

export function show() {
  const all = data.joint ?? [];
  if (!all.length) {
    byId('joint').hidden = true;
    return;
  }
  const select = byId('joint-variant');
  fillOptions(
    select,
    all.map((joint, index) => [index, variantLabel(joint.variant)]),
  );
  byId('joint-controls').hidden = all.length < 2;
  byId('joint-controls').style.display = all.length < 2 ? 'none' : '';
  const chart = addChart('chart-joint', 'Joint posterior draws of ε_L and ε_R', () => {
    const joint = all[Number(select.value) || 0];
    if (!joint || !joint.left.length) return {empty: 'No joint draws in this audit.'};
    const [left, right] = [quantile(joint.left, 0.5), quantile(joint.right, 0.5)];
    const fill = {color: '#7fb8d8', line: {width: 0}};
    const dotted = {dash: 'dot', width: 1.5};
    return {
      traces: [
        {
          x: joint.left,
          y: joint.right,
          mode: 'markers',
          marker: {color: OKABE_ITO[0], size: 5, opacity: 0.4},
          hovertemplate: 'ε<sub>L</sub> %{x:.2f}, ε<sub>R</sub> %{y:.2f}<extra></extra>',
        },
        {
          x: joint.left,
          type: 'histogram',
          yaxis: 'y2',
          marker: fill,
          nbinsx: 40,
          hovertemplate: '%{x}: %{y} draws<extra></extra>',
        },
        {
          y: joint.right,
          type: 'histogram',
          xaxis: 'x2',
          marker: fill,
          nbinsy: 40,
          hovertemplate: '%{y}: %{x} draws<extra></extra>',
        },
      ],
      layout: layoutOf({
        showlegend: false,
        bargap: 0.04,
        xaxis: axis('ε<sub>L</sub>', {domain: [0, 0.8]}),
        yaxis: axis('ε<sub>R</sub>', {domain: [0, 0.78]}),
        xaxis2: axis('draws', {domain: [0.83, 1], nticks: 3, showgrid: false}),
        yaxis2: axis('draws', {domain: [0.82, 1], nticks: 3, showgrid: false}),
        shapes: [
          line(left, 0, left, 0.78, {yref: 'paper', line: dotted}),
          line(0, right, 0.8, right, {xref: 'paper', line: dotted}),
        ],
      }),
    };
  });
  select.addEventListener('change', () => drawChart(chart));
}
