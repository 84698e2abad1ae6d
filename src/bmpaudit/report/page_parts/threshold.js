// How many nodes are above a threshold that the reader moves.
import {addChart, axis, layoutOf, line, moveMarks, OKABE_ITO, SELECTED_COLOUR} from './charts.js';
import {byId} from './dom.js';
import {formatCount, formatCounted, formatFixed, formatOdds, formatPercent} from './format.js';
import {audited, data, isAboveThreshold, nodes, numShown, setThreshold, state, whenChanged} from './state.js';

export function show() {
  const lows = audited.map((position) => nodes.right_low[position]).sort((a, b) => a - b);
  const slider = byId('threshold');
  const least = Math.floor(Math.min(0, lows.length ? lows[0] : 0));
  const most = Math.max(1, Math.ceil(lows.length ? lows.at(-1) : 1));
  Object.assign(slider, {min: least, max: most, step: 0.05, disabled: !lows.length});
  slider.value = Math.min(Math.log(10), most); // odds of 10 : 1
  state.threshold = Number(slider.value);
  slider.addEventListener('input', () => setThreshold(Number(slider.value)));

  const showCount = () => {
    const count = audited.filter(isAboveThreshold).length;
    const odds = `${formatFixed(state.threshold)} (odds ${formatOdds(state.threshold)})`;
    byId('threshold-value').textContent = odds;
    slider.setAttribute('aria-valuetext', odds);
    const shown = numShown < data.graph.num_nodes ? ' shown here' : '';
    byId('threshold-count').textContent = lows.length
      ? `${formatCount(count)} of ${formatCounted(lows.length, 'audited node')}${shown} (${formatPercent(count / lows.length, 1)}) ${count === 1 ? 'is' : 'are'} above the threshold.`
      : 'No node could be audited.';
  };
  const chart = addChart(
    'chart-threshold',
    'Number of nodes above each threshold',
    () => {
      if (!lows.length) return {empty: 'No node could be audited.'};
      // Above t are the nodes whose lower end exceeds t: the count falls at each lower end.
      const x = [least, ...lows, most];
      const y = [lows.length, ...lows.map((_, index) => lows.length - index - 1), 0];
      return {
        traces: [
          {
            x,
            y,
            mode: 'lines',
            line: {shape: 'hv', color: OKABE_ITO[0], width: 2},
            hovertemplate: 'above %{x:.2f}: %{y:,} nodes<extra></extra>',
          },
        ],
        layout: layoutOf({
          margin: {l: 50, r: 10, t: 8, b: 45},
          xaxis: axis('threshold for e<sub>R</sub>', {range: [least, most]}),
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
