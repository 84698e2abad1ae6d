// The attack on the real memberships beside attacks after shuffling memberships between models.
import {addChart, axis, layoutOf, SELECTED_COLOUR} from './charts.js';
import {byId, withSubscripts} from './dom.js';
import {formatCounted, formatFixed, formatInterval, isNumber} from './format.js';
import {data} from './state.js';
import {largest, smallest} from './statistics.js';

function sentenceOf(test) {
  const shuffled = test.null_statistics;
  const range = formatInterval(smallest(shuffled), largest(shuffled), 3);
  const verdict = test.is_leakage_found
    ? 'The real score is above all of these, so the attack found leakage.'
    : 'The real score is not above all of these, so the attack found no leakage.';
  return `The attack scores ${formatFixed(test.statistic, 3)} on the real memberships, and ${range} after shuffling memberships between models (${formatCounted(shuffled.length, 'time')}). ${verdict} p = ${formatFixed(test.p_value)}.`;
}

function strip(title, real, shuffled) {
  const drawn = (shuffled ?? []).filter(isNumber);
  if (!drawn.length || !isNumber(real)) return {empty: 'Not computed.'};
  const points = (x, name, marker) => ({
    x,
    y: x.map(() => 0),
    name,
    mode: 'markers',
    marker,
    hovertemplate: `%{x:.3g}<extra>${name}</extra>`,
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
      xaxis: axis(title, {rangemode: 'tozero'}),
      yaxis: {visible: false, range: [-1, 1], fixedrange: true},
    }),
  };
}

export function show() {
  const test = data.permutation_test;
  const sentence = byId('permutation-sentence');
  sentence.replaceChildren(...withSubscripts(test ? sentenceOf(test) : 'No permutation test was run.'));
  if (!test) {
    byId('permutation-charts').remove();
    return;
  }
  sentence.classList.toggle('notice', !test.is_leakage_found);
  addChart('chart-permutation-statistic', 'Score of the attack on real and on shuffled memberships', () =>
    strip('score: mean over nodes of |A/n<sub>0</sub> + B/n<sub>1</sub> − 1|', test.statistic, test.null_statistics),
  );
  addChart('chart-permutation-median', 'Estimate of ε from real and from shuffled memberships', () =>
    strip('posterior median of ε', test.median, test.null_medians),
  );
}
