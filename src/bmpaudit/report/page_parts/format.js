// Numbers as a reader wants them. A value that is missing is a dash.
const MISSING = '–';

function isNumber(value) {
  return typeof value === 'number' && Number.isFinite(value);
}

function formatFixed(value, digits = 2) {
  if (!isNumber(value)) return MISSING;
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace('-', '') : text).replace('-', '−');
}

function formatCount(value) {
  return isNumber(value) ? value.toLocaleString('en-US', {maximumFractionDigits: 0}) : MISSING;
}

function formatSignificant(value, digits = 3) {
  if (!isNumber(value)) return MISSING;
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) {
    const [front, power] = value.toExponential(digits - 1).split('e');
    const raised = String(Number(power)).replace(/./g, (c) => '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'['-0123456789'.indexOf(c)]);
    return `${front.replace('-', '−')} × 10${raised}`;
  }
  return value.toLocaleString('en-US', {maximumSignificantDigits: digits}).replace('-', '−');
}

function formatPercent(value, digits = 0) {
  return isNumber(value) ? `${(100 * value).toFixed(digits)} %` : MISSING;
}

// The odds e^ε : 1. Beyond the range of floating point only their order is said.
function formatOdds(epsilon) {
  if (!isNumber(epsilon)) return MISSING;
  const odds = Math.exp(epsilon);
  return Number.isFinite(odds) ? `${formatSignificant(odds, 2)} : 1` : 'over 10³⁰⁸ : 1';
}

function formatInterval(low, high) {
  return isNumber(low) && isNumber(high) ? `${formatFixed(low)} to ${formatFixed(high)}` : MISSING;
}

// By code points, so that no character is cut in two.
function shorten(text, length = 40) {
  const points = Array.from(String(text));
  return points.length > length ? `${points.slice(0, length - 1).join('')}…` : points.join('');
}

function quantile(values, prob) {
  const sorted = values.filter(isNumber).sort((a, b) => a - b);
  if (!sorted.length) return null;
  const place = prob * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

function smallest(values) {
  return values.reduce((least, value) => (isNumber(value) && value < least ? value : least), Infinity);
}

function largest(values) {
  return values.reduce((most, value) => (isNumber(value) && value > most ? value : most), -Infinity);
}
