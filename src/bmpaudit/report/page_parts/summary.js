// The answer for the reader in a hurry. The verdict itself stands in the page's HTML; here it gets its subscripts.
function withOdds(value) {
  return isNumber(value) ? [formatFixed(value), element('span', {class: 'odds'}, formatOdds(value))] : [MISSING];
}

function showHeadline() {
  const names = ['Estimated (median)', '90 % interval', 'Proven at least', 'Floor of the sampling', 'Upper tail due to the prior'];
  const rows = data.headline.map((row) => {
    const estimated = [formatFixed(row.p50), element('span', {class: 'odds'}, formatOdds(row.p50))];
    const interval = isNumber(row.p5) && isNumber(row.p95)
      ? [formatInterval(row.p5, row.p95), element('span', {class: 'odds'}, `${formatOdds(row.p5)} to ${formatOdds(row.p95)}`)] : [MISSING];
    const name = element('th', {scope: 'row'}, ...withSubscripts(row.name), element('span', {class: 'meaning'}, row.meaning ?? ''));
    const level = isNumber(row.proven) && isNumber(row.proven_level) ? [element('span', {class: 'odds'}, `at ${formatPercent(row.proven_level)}`)] : [];
    const cells = [estimated, interval, [...withOdds(row.proven), ...level], withOdds(row.floor), [formatPercent(row.tail_prior_share)]];
    return element('tr', {}, name, ...cells.map((cell, index) =>
      element('td', {class: 'number', 'data-label': names[index]}, element('span', {class: 'value'}, ...cell))));
  });
  byId('headline').replaceChildren(headings(['', ...names]), element('tbody', {}, ...rows));
}

function showSummary() {
  const {graph} = data;
  const parts = [graph.name, `${formatCount(graph.num_nodes)} nodes`, `${formatCount(graph.num_edges)} edges`, `${formatCount(graph.num_features)} features`,
    `${formatCount(graph.num_classes)} ${graph.num_classes === 1 ? 'class' : 'classes'}`, `bmpaudit ${data.version}`, String(data.created).replace('T', ' ').replace('Z', ' UTC')];
  byId('subtitle').textContent = parts.join(' · ');
  document.querySelector('.verdict').replaceChildren(...withSubscripts(data.verdict));
  showHeadline();
  fillList(byId('cautions'), data.cautions, 'Nothing was flagged.');
  fillList(byId('is-not'), data.is_not, 'See the documentation of the estimator.');
  document.querySelectorAll('.level').forEach((place) => {
    place.textContent = formatPercent(data.leakage_level);
  });
}
