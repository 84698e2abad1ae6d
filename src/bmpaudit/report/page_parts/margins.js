// Margins of the selected node under H0 and H1, binned, with the fitted normals.
import {addChart, axis, drawChart, forPlotly, layoutOf, OKABE_ITO} from './charts.js';
import {formatCounted, isNumber, shorten} from './format.js';
import {data, inWords, nodes, state, whenChanged} from './state.js';

export function show() {
  const {margins} = data;
  const chart = addChart('chart-margins', 'Margins of the selected node', () => {
    const position = state.selected;
    if (position === null) return {empty: 'Select a node to see its margins.'};
    const [low, high] = [margins?.low?.[position], margins?.high?.[position]];
    if (!isNumber(low) || !isNumber(high)) return {empty: 'No margins are known for this node.'};
    const width = (high - low) / margins.num_bins;
    const sides = [
      ['H<sub>0</sub>: trained without it', 'out', OKABE_ITO[0], 'solid'],
      ['H<sub>1</sub>: trained with it', 'in', OKABE_ITO[1], 'dash'],
    ];
    const traces = sides.flatMap(([name, side, colour, dash]) => {
      const counts = margins[side][position] ?? [];
      const total = counts.reduce((sum, count) => sum + count, 0);
      if (!total) return [];
      // With one value only there is no width, so counts are drawn where densities would be infinite.
      const bars = {
        x: counts.map((_, bin) => low + (bin + 0.5) * width),
        y: counts.map((count) => (width > 0 ? count / (total * width) : count)),
        width: width > 0 ? width : undefined,
        type: 'bar',
        name: `${name} (${formatCounted(total, 'model')})`,
        marker: {color: colour, opacity: 0.45},
        customdata: counts.map((count) => `${formatCounted(count, 'model')}`),
        hovertemplate: '%{x:.3g}: %{customdata}<extra></extra>',
      };
      const [mean, std] = [margins[`mean_${side}`]?.[position], margins[`std_${side}`]?.[position]];
      if (!isNumber(mean) || !(std > 0)) return [bars];
      const x = Array.from(
        {length: 161},
        (_, step) =>
          Math.min(low, mean - 3 * std) +
          ((Math.max(high, mean + 3 * std) - Math.min(low, mean - 3 * std)) * step) / 160,
      );
      const y = x.map((at) => Math.exp(-0.5 * ((at - mean) / std) ** 2) / (std * Math.sqrt(2 * Math.PI)));
      return [
        bars,
        {x, y, mode: 'lines', line: {color: colour, width: 2.5, dash}, showlegend: false, hoverinfo: 'skip'},
      ];
    });
    if (!traces.length) return {empty: 'No margins are known for this node.'};
    return {
      traces,
      layout: layoutOf({
        barmode: 'overlay',
        bargap: 0,
        showlegend: true,
        uirevision: position,
        margin: {l: 60, r: 34, t: 40, b: 50},
        legend: {orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0},
        title: {
          text: `${inWords('node')} ${forPlotly(shorten(nodes.name[position], 40))}`,
          x: 0.01,
          xanchor: 'left',
          y: 0.99,
          yanchor: 'top',
          font: {size: 14},
          automargin: true,
        },
        xaxis: axis(`margin (${forPlotly(margins.view ?? '')})`),
        yaxis: axis('density', {rangemode: 'tozero'}),
      }),
    };
  });
  whenChanged('select', () => drawChart(chart));
}
