// Numbers as a reader wants them, in the same words as report/words.py. A missing value is a dash.
export const MISSING = '–';
const LARGEST_SHOWN_ODDS = 1e6;

export function isNumber(value) {
  return typeof value === 'number' && Number.isFinite(value);
}

export function formatFixed(value, digits = 2) {
  if (!isNumber(value)) return MISSING;
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace('-', '') : text).replace('-', '−');
}

export function formatCount(value) {
  return isNumber(value) ? value.toLocaleString('en-US', {maximumFractionDigits: 0}) : MISSING;
}

// "1 node", "24 nodes".
export function formatCounted(value, noun, plural = `${noun}s`) {
  return `${formatCount(value)} ${value === 1 ? noun : plural}`;
}

export function formatSignificant(value, digits = 3) {
  if (!isNumber(value)) return MISSING;
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) {
    const [front, power] = value.toExponential(digits - 1).split('e');
    const raised = String(Number(power)).replace(/./g, (c) => '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'['-0123456789'.indexOf(c)]);
    return `${front.replace('-', '−')} × 10${raised}`;
  }
  return value.toLocaleString('en-US', {maximumSignificantDigits: digits}).replace('-', '−');
}

export function formatPercent(value, digits = 0) {
  return isNumber(value) ? `${(100 * value).toFixed(digits)} %` : MISSING;
}

// "99 %", "99.9 %": a share that somebody chose.
export function formatCertainty(share) {
  return `${Number((100 * share).toFixed(2))} %`;
}

// Never rounded up, as it is a lower bound.
export function formatNames(names) {
  return names >= 1 ? formatCount(Math.floor(names)) : String(Math.floor(100 * names) / 100);
}

export function formatP(value) {
  return isNumber(value) ? String(Number(value.toPrecision(2))) : MISSING;
}

// e^|ε|, or null where it is too large to be told.
function ratioOf(epsilon) {
  const ratio = Math.exp(Math.abs(epsilon));
  if (ratio > LARGEST_SHOWN_ODDS) return null;
  return ratio >= 20 ? formatCount(Math.round(ratio)) : String(Number(ratio.toPrecision(2)));
}

// The odds e^ε : 1, or 1 : e^-ε below even odds.
export function formatOdds(epsilon) {
  if (!isNumber(epsilon)) return MISSING;
  const ratio = ratioOf(epsilon);
  if (ratio === null) return epsilon > 0 ? 'over 1,000,000 : 1' : 'below 1 : 1,000,000';
  return epsilon >= 0 ? `${ratio} : 1` : `1 : ${ratio}`;
}

// What odds are multiplied by.
export function formatFactor(epsilon) {
  if (!isNumber(epsilon)) return MISSING;
  const ratio = ratioOf(epsilon);
  if (ratio === null) return epsilon > 0 ? 'over ×1,000,000' : 'below ×1/1,000,000';
  return epsilon >= 0 || ratio === '1' ? `×${ratio}` : `×1/${ratio}`;
}

export function formatInterval(low, high, digits = 2) {
  return isNumber(low) && isNumber(high) ? `${formatFixed(low, digits)} to ${formatFixed(high, digits)}` : MISSING;
}

// Control characters, and marks that turn the direction of the text after them, are spelled out as on a terminal.
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

function spelledOut(control) {
  return `\\u${control.codePointAt(0).toString(16).padStart(4, '0')}`;
}

// A name from the user. By code points, so that no character is cut in two.
export function shorten(text, length = 40) {
  const points = Array.from(
    String(text)
      .slice(0, 2 * length)
      .replace(CONTROLS, spelledOut),
  );
  return points.length > length ? `${points.slice(0, length - 1).join('')}…` : points.join('');
}
