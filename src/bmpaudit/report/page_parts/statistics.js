// Order statistics of lists in which values may be missing.
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
