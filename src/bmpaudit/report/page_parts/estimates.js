// The table of estimates, folded away with all that belongs to it where no leakage was found.
import {drawInside} from './charts.js';
import {byId, element, headings, small, withSubscripts} from './dom.js';
import {formatFactor, formatFixed, formatInterval, formatOdds, formatPercent, isNumber, MISSING} from './format.js';
import {data} from './state.js';

const COLUMNS = [
  'Estimate (median)',
  '90 % credible interval',
  'Half the models',
  'Proven',
  'Sampling alone (floor)',
  'Prior’s share',
];

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
  return [estimate, interval, [formatFixed(row.half_median)], proven, floor, [formatPercent(row.tail_prior_share)]];
}

export function show() {
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
      ...cellsOf(row).map((cell, index) =>
        element('td', {class: 'number', 'data-label': COLUMNS[index]}, element('span', {class: 'value'}, ...cell)),
      ),
    );
  });
  byId('headline').replaceChildren(headings(['', ...COLUMNS]), element('tbody', {}, ...rows));
  const fold = byId('estimates');
  fold.open = data.is_leakage_found;
  byId('no-estimates').hidden = data.is_leakage_found;
  fold.addEventListener('toggle', () => {
    if (fold.open) drawInside(fold);
  });
}
