// The attack on the real memberships beside attacks after shuffling memberships between models.
import {addChart, axis, layoutOf, line, SELECTED_COLOUR} from './charts.js';
import {byId} from './dom.js';
import {formatCount, formatCounted, formatFixed, formatInterval, isNumber} from './format.js';
import {data} from './state.js';
import {largest, smallest} from './statistics.js';

const GUESSING = 0.5;

function sentenceOf(test) {
  const shuffled = test.null_statistics;
  const range = formatInterval(smallest(shuffled), largest(shuffled), 3);
  const reached = shuffled.filter((value) => value >= test.statistic).length;
  const verdict = test.is_leakage_found ? 'the attack found leakage' : 'the attack found no leakage';
  return (
    `The attack’s AUC is ${formatFixed(test.statistic, 3)} on the real memberships, and ${range} after shuffling ` +
    `(${formatCounted(shuffled.length, 'time')}); ${GUESSING} is guessing. ${formatCount(reached)} of ` +
    `${formatCounted(shuffled.length, 'shuffle')} reached the real one (p = ${formatFixed(test.p_value)}): ${verdict}.`
  );
}

function strip(real, shuffled) {
  const drawn = (shuffled ?? []).filter(isNumber);
  if (!drawn.length || !isNumber(real)) return {empty: 'Not computed.'};
  const points = (x, name, marker) => ({
    x,
    y: x.map(() => 0),
    name,
    mode: 'markers',
    marker,
    hovertemplate: `%{x:.4f}<extra>${name}</extra>`,
  });
  return {
    traces: [
      points(drawn, `shuffled memberships (${drawn.length})`, {
        symbol: 'line-ns-open',
        size: 18,
        color: '#56606b',
        line: {width: 2},
      }),
      points([real], 'real memberships', {symbol: 'diamond', size: 13, color: SELECTED_COLOUR}),
    ],
    layout: layoutOf({
      margin: {l: 14, r: 14, t: 30, b: 45},
      xaxis: axis('AUC: how often a member scores above a non-member (dotted: guessing)'),
      yaxis: {visible: false, range: [-1, 1], fixedrange: true},
      shapes: [line(GUESSING, -1, GUESSING, 1, {line: {dash: 'dot', width: 1}})],
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
  sentence.classList.toggle('notice', !test.is_leakage_found);
  addChart('chart-permutation', 'AUC of the attack on real and on shuffled memberships', () =>
    strip(test.statistic, test.null_statistics),
  );
}
