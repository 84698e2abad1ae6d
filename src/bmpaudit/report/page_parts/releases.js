// A row per release: what is proven, how many are named, and how good and how honest the attack is.
import {byId, element, headings, numberCell, small} from './dom.js';
import {
  formatCount,
  formatFactor,
  formatFixed,
  formatInterval,
  formatOdds,
  formatPercent,
  isNumber,
  MISSING,
} from './format.js';
import {inWords, rungs} from './state.js';

const CERTAINTIES = [0.9, 0.95, 0.99];
const SYMBOLS = {epsilon_right: 'ε_R', epsilon_left: 'ε_L', mp: 'MP ε'};

// What is proven, if it is more than the sampling alone gives away.
function provenCell(bound, parameter) {
  if (!bound || !isNumber(bound.proven)) return numberCell('nothing');
  if (!bound.is_shown) return numberCell('nothing', small('beyond the sampling'));
  const asOdds = parameter === 'mp' ? formatFactor : formatOdds;
  return numberCell(
    `≥ ${formatFixed(bound.proven)}`,
    small(asOdds(bound.proven)),
    small(
      bound.is_ceiling
        ? `all ${formatCount(bound.num_guesses)} right: ceiling`
        : `${formatCount(bound.num_hits)} of ${formatCount(bound.num_guesses)} right`,
    ),
    small(`by ${bound.source}`),
  );
}

function namedCell(curve, certainty) {
  const row = curve.find((each) => each.precision === certainty);
  if (!row) return numberCell(MISSING);
  return numberCell(
    formatFixed(row.correct, 1),
    small(formatInterval(row.correct_low, row.correct_high, 1)),
    ...(row.is_settled ? [] : [small('too few models')]),
  );
}

// Of what is given out: what the release costs those who use it.
function accuracyCell(release) {
  if (!isNumber(release.held_out_accuracy)) return numberCell(MISSING);
  return numberCell(
    formatPercent(release.held_out_accuracy, 1),
    small(`${formatPercent(release.train_accuracy, 1)} on ${inWords('training nodes')}`),
  );
}

export function show() {
  const rows = rungs.map((release) =>
    element(
      'tr',
      {},
      element(
        'th',
        {scope: 'row', class: 'name'},
        release.name,
        small(`${release.attack} attack, ${release.queries.join(' and ')}`),
        small(`named by ${release.exposed_by}`),
        release.not_proven ? small(`nothing proven: ${release.not_proven}`) : '',
      ),
      ...Object.keys(SYMBOLS).map((parameter) => provenCell(release.proof?.[parameter], parameter)),
      ...CERTAINTIES.map((certainty) => namedCell(release.exposure.members, certainty)),
      numberCell(formatFixed(release.auc, 3)),
      numberCell(formatPercent(release.tpr_at_fpr['0.01'], 1)),
      accuracyCell(release),
      numberCell(formatFixed(release.exposure.reliability.expected_calibration_error, 4)),
    ),
  );
  const named = CERTAINTIES.map((certainty) => `Members named at ${formatPercent(certainty)}`);
  byId('release-table').replaceChildren(
    headings([
      'Release',
      ...Object.values(SYMBOLS).map((symbol) => `Proven ${symbol}`),
      ...named,
      'AUC',
      'TPR at FPR 1 %',
      'Held-out accuracy',
      'Calibration error',
    ]),
    element('tbody', {}, ...rows),
  );
}
