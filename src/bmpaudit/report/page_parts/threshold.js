// How many nodes are named more often than a threshold that the reader moves.
import {addChart, axis, layoutOf, line, moveMarks, OKABE_ITO, SELECTED_COLOUR} from './charts.js';
import {byId} from './dom.js';
import {formatCount, formatCounted, formatPercent} from './format.js';
import {counted, data, isAboveThreshold, nodes, numShown, setThreshold, state, whenChanged} from './state.js';

const USUAL = 0.1;

export function show() {
  const lows = counted.map((position) => nodes.member_exposure_low[position]).sort((a, b) => a - b);
  const slider = byId('threshold');
  Object.assign(slider, {min: 0, max: 1, step: 0.01, disabled: !lows.length});
  slider.value = USUAL;
  state.threshold = Number(slider.value);
  slider.addEventListener('input', () => setThreshold(Number(slider.value)));

  const showCount = () => {
    const count = counted.filter(isAboveThreshold).length;
    byId('threshold-value').textContent = formatPercent(state.threshold);
    slider.setAttribute('aria-valuetext', formatPercent(state.threshold));
    const shown = numShown < data.graph.num_nodes ? ' shown here' : '';
    byId('threshold-count').textContent = lows.length
      ? `${formatCount(count)} of ${formatCounted(lows.length, 'node')}${shown} (${formatPercent(count / lows.length, 1)}).`
      : 'No node was in a model that was attacked.';
  };
  const chart = addChart(
    'chart-threshold',
    'Number of nodes above each threshold',
    () => {
      if (!lows.length) return {empty: 'No node was in a model that was attacked.'};
      // Above t are the nodes whose lower end exceeds t: the count falls at each lower end.
      const x = [0, ...lows, 1];
      const y = [lows.length, ...lows.map((_, index) => lows.length - index - 1), 0];
      return {
        traces: [
          {
            x,
            y,
            mode: 'lines',
            line: {shape: 'hv', color: OKABE_ITO[0], width: 2},
            hovertemplate: 'above %{x:.0%}: %{y:,} nodes<extra></extra>',
          },
        ],
        layout: layoutOf({
          margin: {l: 50, r: 10, t: 8, b: 45},
          xaxis: axis('threshold for exposure', {range: [-0.01, 1], tickformat: '.0%'}),
          yaxis: axis('nodes above', {rangemode: 'tozero'}),
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
