// The table of nodes: sorted, filtered, in pages, and out as CSV.
import {byId, element, fillOptions, withSubscripts} from './dom.js';
import {formatCount, formatFixed, formatP, formatPercent, formatSignificant, isNumber, shorten} from './format.js';
import {
  data,
  inWords,
  isAboveThreshold,
  isAudited,
  isFlagged,
  nodes,
  numShown,
  positions,
  sampleInWords,
  selectNode,
  state,
  whenChanged,
} from './state.js';

const ROWS_OF_PAGE = 50;
const formatShare = (value) => formatPercent(value);
const COLUMNS = [
  {key: 'name', label: inWords('Node')},
  {key: 'rank', label: 'Rank', format: formatCount, isAscending: true},
  {key: 'p_value', label: 'p', format: formatP, isAscending: true},
  {key: 'is_leaking', label: 'Leaks', format: (isLeaking) => (isLeaking ? 'proven' : '')},
  {key: 'class', label: 'Class'},
  {key: 'degree', label: 'Degree', format: formatCount},
  {key: 'prior_prob', label: 'Prior γ', format: formatSignificant},
  {key: 'member_named', label: 'Named', format: formatCount, whole: 'member_models'},
  {key: 'member_exposure', label: 'Exposure', format: formatShare},
  {key: 'member_exposure_low', label: 'at least', format: formatShare},
  {key: 'member_exposure_high', label: 'at most', format: formatShare},
  {key: 'non_member_named', label: 'Named as out', format: formatCount, whole: 'non_member_models'},
  {key: 'accuracy', label: 'Accuracy', format: formatFixed},
  {key: 'homophily', label: 'Homophily', format: formatFixed},
  {key: 'right_low', label: 'e_R low', format: formatFixed},
  {key: 'right_median', label: 'e_R median', format: formatFixed},
  {key: 'right_high', label: 'e_R high', format: formatFixed},
  {key: 'left_low', label: 'e_L low', format: formatFixed},
  {key: 'num_out', label: 'n₀', format: formatCount},
  {key: 'num_in', label: 'n₁', format: formatCount},
  {key: 'false_positives', label: 'A', format: formatCount},
  {key: 'false_negatives', label: 'B', format: formatCount},
  {key: 'flag', label: 'Flag'},
];
const CSV_KEYS = [
  'id',
  'name',
  'rank',
  'class',
  'degree',
  'homophily',
  'component',
  'prior_prob',
  'prior_standard_error',
  'member_models',
  'member_named',
  'member_exposure_low',
  'member_exposure_high',
  'non_member_models',
  'non_member_named',
  'non_member_exposure_low',
  'non_member_exposure_high',
  'p_value',
  'is_leaking',
  'accuracy',
  'floor_right',
  'floor_left',
  'num_out',
  'num_in',
  'false_positives',
  'false_negatives',
  'right_low',
  'right_median',
  'right_high',
  'left_low',
  'left_median',
  'left_high',
  'excess_right_median',
  'flag',
];

// RFC 4180.
function csvField(value) {
  const text = value === null || value === undefined ? '' : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function csvOf(rows) {
  const lines = [CSV_KEYS, ...rows.map((position) => CSV_KEYS.map((key) => nodes[key]?.[position]))];
  return lines.map((fields) => `${fields.map(csvField).join(',')}\r\n`).join('');
}

function download(text, name, type) {
  const address = URL.createObjectURL(new Blob([text], {type}));
  const anchor = element('a', {href: address, download: name});
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function compare(key, isDescending) {
  const names = new Intl.Collator('en', {numeric: true});
  const isMissing = (value) => value === null || value === undefined || value === '';
  return (one, other) => {
    const [a, b] = [nodes[key][one], nodes[key][other]];
    // What is missing comes last, whichever way one sorts.
    if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b) || one - other;
    const order = typeof a === 'number' ? a - b : names.compare(a, b);
    return (isDescending ? -order : order) || one - other;
  };
}

export function show() {
  const view = {key: 'rank', isDescending: false, page: 0, rows: []};
  const haystacks = positions.map((position) =>
    [nodes.name, nodes.id, nodes.class, nodes.flag]
      .map((column) => String(column[position]))
      .join('\n')
      .toLowerCase(),
  );
  const [search, classSelect, filter] = [byId('table-search'), byId('table-class'), byId('table-show')];
  const classes = [...new Set(nodes.class)].sort(new Intl.Collator('en', {numeric: true}).compare);
  fillOptions(classSelect, [['', 'all classes'], ...classes.map((name, index) => [index, shorten(name)])]);
  const body = element('tbody');
  const sorts = COLUMNS.map((column) => {
    const button = element(
      'button',
      {type: 'button', onclick: () => sortBy(column)},
      ...withSubscripts(column.label),
      element('span', {'aria-hidden': 'true', class: 'arrow'}),
    );
    return element('th', {scope: 'col', class: column.format ? 'number' : null}, button);
  });
  byId('node-table').replaceChildren(element('thead', {}, element('tr', {}, ...sorts)), body);
  const notes = [];
  if (!nodes.member_named.some((named) => named > 0)) {
    const {at_risk: certainty, members} = data.releases[0].exposure;
    const most = formatFixed(members.find((row) => row.precision === certainty)?.correct_high, 1);
    const ranked = `so ${inWords('nodes')} that are proven to leak come first, then those of smaller p.`;
    notes.push(
      `None of these models names anybody as a member with ${formatPercent(certainty)} certainty (per model, it may be up to ${most}), ${ranked} `,
    );
  }
  if (numShown < data.graph.num_nodes) {
    const all = element('a', {href: 'nodes.parquet'}, 'nodes.parquet');
    notes.push(`${sampleInWords()} All are in `, all, ', beside this page; bmpaudit nodes lists them.');
  }
  byId('nodes-shown').replaceChildren(...notes);

  function sortBy(column) {
    const isSame = view.key === column.key;
    view.isDescending = isSame ? !view.isDescending : Boolean(column.format) && !column.isAscending;
    view.key = column.key;
    view.page = 0;
    refresh();
  }

  function refresh() {
    const wanted = search.value.trim().toLowerCase();
    const wantedClass = classSelect.value === '' ? null : classes[Number(classSelect.value)];
    const isShown = (position) =>
      (wantedClass === null || nodes.class[position] === wantedClass) &&
      haystacks[position].includes(wanted) &&
      (filter.value !== 'above' || isAboveThreshold(position)) &&
      (filter.value !== 'leaking' || nodes.is_leaking[position]) &&
      (filter.value !== 'flagged' || isFlagged(position) || !isAudited(position));
    view.rows = positions.filter(isShown).sort(compare(view.key, view.isDescending));
    COLUMNS.forEach((column, index) => {
      const isKey = column.key === view.key;
      sorts[index].setAttribute('aria-sort', isKey ? (view.isDescending ? 'descending' : 'ascending') : 'none');
      sorts[index].querySelector('.arrow').textContent = isKey ? (view.isDescending ? ' ▼' : ' ▲') : '';
    });
    showPage();
  }

  function showPage() {
    const numPages = Math.max(1, Math.ceil(view.rows.length / ROWS_OF_PAGE));
    view.page = Math.min(Math.max(view.page, 0), numPages - 1);
    const shown = view.rows.slice(view.page * ROWS_OF_PAGE, (view.page + 1) * ROWS_OF_PAGE);
    const focused = shown.includes(state.selected) ? state.selected : shown[0];
    body.replaceChildren(
      ...shown.map((position) =>
        element(
          'tr',
          {
            'data-position': position,
            'aria-selected': String(position === state.selected),
            tabindex: position === focused ? 0 : -1,
          },
          ...COLUMNS.map(({key, format, whole}) =>
            element(
              'td',
              {class: format ? 'number' : key === 'name' ? 'name' : 'text'},
              format ? format(nodes[key][position]) : shorten(nodes[key][position], 80),
              whole && isNumber(nodes[key][position]) ? ` of ${formatCount(nodes[whole][position])}` : '',
            ),
          ),
        ),
      ),
    );
    const hidden =
      state.selected !== null && !view.rows.includes(state.selected)
        ? inWords(' The selected node is not among them.')
        : '';
    byId('table-count').textContent =
      `${formatCount(view.rows.length)} of ${formatCount(numShown)} ${inWords('nodes')}.${hidden}`;
    byId('table-page').textContent = `Page ${formatCount(view.page + 1)} of ${formatCount(numPages)}`;
    byId('table-previous').disabled = view.page === 0;
    byId('table-next').disabled = view.page === numPages - 1;
  }

  function turnTo(page) {
    view.page = page;
    showPage();
    byId('node-table').parentElement.scrollTop = 0;
  }

  const rowOf = (event) => event.target.closest('tr');
  body.addEventListener('click', (event) => {
    if (rowOf(event)) selectNode(Number(rowOf(event).dataset.position));
  });
  body.addEventListener('keydown', (event) => {
    const row = rowOf(event);
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      selectNode(Number(row.dataset.position));
      body.querySelector('tr[tabindex="0"]').focus();
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const next = event.key === 'ArrowDown' ? row.nextElementSibling : row.previousElementSibling;
      if (!next) return;
      row.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }
  });
  const restart = () => {
    view.page = 0;
    refresh();
  };
  search.addEventListener('input', restart);
  [classSelect, filter].forEach((select) => select.addEventListener('change', restart));
  byId('table-previous').addEventListener('click', () => turnTo(view.page - 1));
  byId('table-next').addEventListener('click', () => turnTo(view.page + 1));
  byId('table-export').addEventListener('click', () =>
    download(csvOf(view.rows), 'nodes.csv', 'text/csv;charset=utf-8'),
  );
  whenChanged('threshold', () => {
    if (filter.value === 'above') restart();
  });
  whenChanged('select', () => {
    const place = view.rows.indexOf(state.selected);
    if (place >= 0) view.page = Math.floor(place / ROWS_OF_PAGE);
    showPage();
    const row = body.querySelector('tr[aria-selected="true"]');
    const frame = byId('node-table').parentElement;
    // Within the frame only: the page itself must not jump.
    if (
      row &&
      (row.offsetTop < frame.scrollTop + 40 || row.offsetTop + row.offsetHeight > frame.scrollTop + frame.clientHeight)
    )
      frame.scrollTop = row.offsetTop - frame.clientHeight / 2;
  });
  refresh();
}
