// Accuracy of the shadow models on the nodes they were trained on and on the others.
import {addChart, axis, layoutOf, OKABE_ITO} from './charts.js';
import {formatPercent, isNumber} from './format.js';
import {data, inWords} from './state.js';
import {largest, quantile, smallest} from './statistics.js';

export function show() {
  addChart('chart-accuracy', 'Accuracy of the shadow models', () => {
    const series = [
      [inWords('training nodes'), data.accuracy?.train],
      [inWords('other nodes'), data.accuracy?.held_out],
    ]
      .map(([name, values]) => [name, (values ?? []).filter(isNumber)])
      .filter(([, values]) => values.length);
    if (!series.length) return {empty: 'No accuracies in this audit.'};
    const everything = series.flatMap(([, values]) => values);
    const [low, high] = [smallest(everything), largest(everything)];
    const size = Math.max((high - low) / 50, 1e-3);
    return {
      traces: series.map(([name, values], index) => ({
        x: values,
        name: `${name} (median ${formatPercent(quantile(values, 0.5), 1)})`,
        type: 'histogram',
        opacity: 0.6,
        marker: {color: OKABE_ITO[index]},
        xbins: {start: low - size / 2, end: high + size, size},
        hovertemplate: '%{x}: %{y} models<extra></extra>',
      })),
      layout: layoutOf({
        barmode: 'overlay',
        showlegend: true,
        xaxis: axis('accuracy', {tickformat: '.0%'}),
        yaxis: axis('shadow models', {rangemode: 'tozero'}),
      }),
    };
  });
}
