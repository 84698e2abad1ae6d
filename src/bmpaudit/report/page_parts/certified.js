// So many names per released model, of which at least such a share is right: certified, for every release.
import {byId, element, headings, numberCell, small} from './dom.js';
import {formatCertainty, formatCount, formatFixed, formatNames, formatPercent, MISSING} from './format.js';
import {inWords, rungs} from './state.js';

const SIDES = {members: 'Names of members', non_members: 'Names of non-members'};

function cellOf(row) {
  if (!(row?.names > 0)) return numberCell(MISSING);
  const counted = `${formatFixed(row.mean_names, 1)} named, ${formatPercent(row.share_correct, 1)} right`;
  return numberCell(`≥ ${formatNames(row.names)}`, small(counted));
}

function rowsOf(side, {certified, exposure}) {
  const title = `${SIDES[side]} (${formatCount(exposure[`total_${side}`])} per model)`;
  const head = element('tr', {class: 'side'}, element('th', {scope: 'rowgroup', colspan: rungs.length + 2}, title));
  const rows = certified[side].map((row, index) =>
    element(
      'tr',
      {},
      element('th', {scope: 'row'}, `at least ${formatCertainty(row.certainty)} right`),
      ...rungs.map((release) => cellOf(release.certified?.[side][index])),
      numberCell(formatCount(row.by_prior)),
    ),
  );
  return element('tbody', {}, head, ...rows);
}

export function show() {
  const certified = rungs.find((release) => release.certified);
  byId('certified-nothing').hidden = Boolean(certified);
  if (!certified) {
    const reason = rungs[0]?.not_proven || 'there is no release';
    byId('certified-nothing').textContent = inWords(`Nothing is certified: ${reason}.`);
    return;
  }
  byId('certified-table').replaceChildren(
    headings(['Share of the names', ...rungs.map((release) => release.name), 'without a model']),
    ...Object.keys(SIDES).map((side) => rowsOf(side, certified)),
  );
}
