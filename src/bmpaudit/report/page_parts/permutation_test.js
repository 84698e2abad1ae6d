// The largest statistic of any node, with the real memberships and with memberships shuffled between models.
import {addChart, axis, layoutOf, line, SELECTED_COLOUR} from './charts.js';
import {byId} from './dom.js';
import {formatCount, formatCounted, formatFixed, formatInterval, formatP, isNumber} from './format.js';
import {data, inWords} from './state.js';
import {largest, smallest} from './statistics.js';

const NUM_BINS = 16;

function sentenceOf(test) {
  const shuffled = test.null_statistics;
  const range = formatInterval(smallest(shuffled), largest(shuffled));
  const times = formatCounted(test.num_shuffles, 'time');
  const verdict = test.is_leakage_found ? 'leakage is found' : 'no leakage is found';
  const areProven = `${test.num_leaking === 1 ? 'is' : 'are'} proven to leak`;
  return inWords(
    `The largest T of any node is ${formatFixed(test.statistic)} with the real memberships, and ${range} after ` +
      `shuffling (${times}). With the sums over all nodes this gives p = ${formatP(test.p_value)}: ${verdict}. ` +
      `Of ${formatCounted(test.num_nodes, 'node')}, ${formatCount(test.num_leaking)} ${areProven}.`,
  );
}

function histogram(real, shuffled) {
  const drawn = shuffled.filter(isNumber);
  if (!drawn.length || !isNumber(real)) return {empty: 'Not computed.'};
  const [start, end] = [smallest(drawn), largest(drawn)];
  const [low, high] = [Math.min(real, start), Math.max(real, end)];
  const size = (end - start || 1) / NUM_BINS;
  const margin = 0.04 * (high - low || 1);
  return {
    traces: [
      {
        type: 'histogram',
        x: drawn,
        name: `shuffled memberships (${formatCounted(drawn.length, 'time')})`,
        autobinx: false,
        xbins: {start, end: end + size, size},
        marker: {color: '#8b95a0'},
      },
      {
        x: [real],
        y: [0],
        name: 'real memberships',
        mode: 'markers',
        marker: {symbol: 'diamond', size: 13, color: SELECTED_COLOUR},
        cliponaxis: false,
        hovertemplate: '%{x:.2f}<extra>real memberships</extra>',
      },
    ],
    layout: layoutOf({
      showlegend: true,
      margin: {l: 50, r: 14, t: 30, b: 45},
      xaxis: axis(inWords('largest T of any node'), {range: [low - margin, high + margin]}),
      yaxis: axis('shuffles', {rangemode: 'tozero'}),
      shapes: [line(real, 0, real, 1, {yref: 'paper', line: {color: SELECTED_COLOUR, width: 2}})],
    }),
  };
}

export function show() {
  const test = data.permutation_test;
  const sentence = byId('permutation-sentence');
  sentence.textContent = test ? sentenceOf(test) : 'No permutation test was run.';
  if (!test) {
    byId('permutation-figure').remove();
    return;
  }
  byId('missed').textContent = data.missed;
  sentence.classList.toggle('notice', !test.is_leakage_found);
  addChart('chart-permutation', 'Largest statistic of any node with real and with shuffled memberships', () =>
    histogram(test.statistic, test.null_statistics),
  );
}
