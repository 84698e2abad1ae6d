// Order statistics of lists in which values may be missing, quantiles of the Beta distribution, and regions.
import {isNumber} from './format.js';

export function quantile(values, prob) {
  const sorted = values.filter(isNumber).sort((a, b) => a - b);
  if (!sorted.length) return null;
  const place = prob * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

export function smallest(values) {
  return values.reduce((least, value) => (isNumber(value) && value < least ? value : least), Infinity);
}

export function largest(values) {
  return values.reduce((most, value) => (isNumber(value) && value > most ? value : most), -Infinity);
}

function logGamma(x) {
  // Stirling's series, after shifting the argument to where it is accurate to 1e-14.
  let shift = 0;
  let z = x;
  while (z < 12) {
    shift += Math.log(z);
    z += 1;
  }
  const r = 1 / (z * z);
  const series = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r / 1188)))) / z;
  return (z - 0.5) * Math.log(z) - z + 0.5 * Math.log(2 * Math.PI) + series - shift;
}

// The regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22, Lentz's method).
function betaCdf(x, a, b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - betaCdf(1 - x, b, a);
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
  const guard = (value) => (Math.abs(value) < 1e-300 ? 1e-300 : value);
  let c = 1;
  let d = 1 / guard(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m < 500; m += 1) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    fraction *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < 1e-14) break;
  }
  return front * fraction;
}

// Quantiles of the Beta distribution, for the spread of an observed error rate.
export function betaQuantile(prob, a, b) {
  let low = 0;
  let high = 1;
  for (let step = 0; step < 60; step += 1) {
    const middle = (low + high) / 2;
    if (betaCdf(middle, a, b) < prob) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

// Corners (α, β) of the region R_η(ε_L, ε_R) of Theorem 6, in order, or null where it is empty or has no area (Prop. 1).
export function regionCorners(priorOdds, left, right) {
  const a = priorOdds * Math.exp(left);
  const b = priorOdds * Math.exp(-right);
  if (!(b < 1 && a > 1)) return null;
  // In (1 − β, α) a parallelogram from (0, 0) to (1, 1), spanned by (1 − b)/(a − b)·(1, a) and (a − 1)/(a − b)·(1, b).
  const first = (1 - b) / (a - b);
  const second = (a - 1) / (a - b);
  return [
    [0, 1],
    [first * a, 1 - first],
    [1, 0],
    [second * b, 1 - second],
  ];
}
