// How many nodes are named more often than a threshold that the reader moves.
import {addChart, axis, layoutOf, line, moveMarks, OKABE_ITO, SELECTED_COLOUR} from './charts.js';
import {byId} from './dom.js';
import {formatCount, formatCounted, formatPercent} from './format.js';
import {data, inWords, setThreshold, state, whenChanged} from './state.js';

const USUAL = 0.1;

export function show() {
  // Of all nodes of the graph, also where the page shows only some of them.
  const {threshold, num_above: numAbove, num_counted: numCounted} = data.thresholds;
  const slider = byId('threshold');
  Object.assign(slider, {min: 0, max: 1, step: 1 / (threshold.length - 1), disabled: !numCounted});
  slider.value = USUAL;
  state.threshold = Number(slider.value);
  slider.addEventListener('input', () => setThreshold(Number(slider.value)));

  const showCount = () => {
    const count = numAbove[Math.round(state.threshold * (threshold.length - 1))];
    byId('threshold-value').textContent = formatPercent(state.threshold);
    slider.setAttribute('aria-valuetext', formatPercent(state.threshold));
    byId('threshold-count').textContent = numCounted
      ? `${formatCount(count)} of ${formatCounted(numCounted, inWords('node'))} (${formatPercent(count / numCounted, 1)}).`
      : inWords('No node was in a model that was attacked.');
  };
  const chart = addChart(
    'chart-threshold',
    'Number of nodes above each threshold',
    () => {
      if (!numCounted) return {empty: 'No node was in a model that was attacked.'};
      return {
        traces: [
          {
            x: threshold,
            y: numAbove,
            mode: 'lines',
            line: {shape: 'hv', color: OKABE_ITO[0], width: 2},
            hovertemplate: `above %{x:.0%}: %{y:,} ${inWords('nodes')}<extra></extra>`,
          },
        ],
        layout: layoutOf({
          margin: {l: 50, r: 10, t: 8, b: 45},
          xaxis: axis('threshold for exposure', {range: [-0.01, 1], tickformat: '.0%'}),
          yaxis: axis(inWords('nodes above'), {rangemode: 'tozero'}),
        }),
      };
    },
    () => [line(state.threshold, 0, state.threshold, 1, {yref: 'paper', line: {dash: 'dash', color: SELECTED_COLOUR}})],
  );
  whenChanged('threshold', () => {
    showCount();
    moveMarks(chart);
  });
  showCount();
}
