// The answer for the reader in a hurry. The verdict itself stands in the page's HTML; here it gets its subscripts.
import {byId, element, fillList, headings, withSubscripts} from './dom.js';
import {
  formatCounted,
  formatFactor,
  formatFixed,
  formatInterval,
  formatOdds,
  formatPercent,
  isNumber,
  MISSING,
} from './format.js';
import {data} from './state.js';

const COLUMNS = ['Proven', 'Sampling alone (floor)', 'Estimate (median)', '90 % credible interval', 'Prior’s share'];

const small = (text) => element('span', {class: 'odds'}, text);

// [cell, whether it depends on the estimator's model]
function cellsOf(row) {
  const inWords = row.multiplies_odds ? formatFactor : formatOdds;
  const confidence = (level) => (isNumber(level) ? [small(`${formatPercent(level)} confidence`)] : []);
  const proven = isNumber(row.proven)
    ? [`≥ ${formatFixed(row.proven)}`, small(inWords(row.proven)), ...confidence(row.proof_level)]
    : ['nothing proven'];
  const relation = row.floor_is_exact ? '' : isNumber(row.floor_level) ? '≥ ' : '≈ ';
  const floor = isNumber(row.floor)
    ? [
        `${relation}${formatFixed(row.floor)}`,
        small(inWords(row.floor)),
        ...(row.floor_is_exact ? [] : confidence(row.floor_level)),
      ]
    : [MISSING];
  const estimate = isNumber(row.p50) ? [formatFixed(row.p50), small(inWords(row.p50))] : [MISSING];
  const interval =
    isNumber(row.p5) && isNumber(row.p95)
      ? [formatInterval(row.p5, row.p95), small(`${inWords(row.p5)} to ${inWords(row.p95)}`)]
      : [MISSING];
  return [
    [proven, false],
    [floor, false],
    [estimate, true],
    [interval, true],
    [[formatPercent(row.tail_prior_share)], true],
  ];
}

function showHeadline() {
  const isDoubtful = data.permutation_test ? !data.permutation_test.is_leakage_found : false;
  byId('no-leakage').hidden = !isDoubtful;
  const rows = data.headline.map((row) => {
    const name = element(
      'th',
      {scope: 'row'},
      ...withSubscripts(row.name),
      element('span', {class: 'meaning'}, row.meaning ?? ''),
    );
    return element(
      'tr',
      {},
      name,
      ...cellsOf(row).map(([cell, isEstimated], index) =>
        element(
          'td',
          {class: isEstimated && isDoubtful ? 'number is-doubtful' : 'number', 'data-label': COLUMNS[index]},
          element('span', {class: 'value'}, ...cell),
        ),
      ),
    );
  });
  byId('headline').replaceChildren(headings(['', ...COLUMNS]), element('tbody', {}, ...rows));
}

export function show() {
  const {graph} = data;
  const parts = [
    graph.name,
    formatCounted(graph.num_nodes, 'node'),
    formatCounted(graph.num_edges, 'edge'),
    formatCounted(graph.num_features, 'feature'),
    formatCounted(graph.num_classes, 'class', 'classes'),
    `bmpaudit ${data.version}`,
    String(data.created).replace('T', ' ').replace('Z', ' UTC'),
  ];
  byId('subtitle').textContent = parts.join(' · ');
  document.querySelector('.verdict').replaceChildren(...withSubscripts(data.verdict));
  showHeadline();
  fillList(byId('cautions'), data.cautions, 'Nothing was flagged.');
  fillList(byId('is-not'), data.is_not, 'See the documentation of the estimator.');
  document.querySelectorAll('.level').forEach((place) => {
    place.textContent = formatPercent(data.leakage_level);
  });
}
