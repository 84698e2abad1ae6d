// Order statistics of lists in which values may be missing.
import {isNumber} from './format.js';

const WHISKER_REACH = 1.5; // lengths of the box

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

export function meanOf(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

// Tukey's box: quartiles, and whiskers to the furthest values within 1.5 lengths of the box.
export function boxOf(values) {
  const [lower, median, upper] = [0.25, 0.5, 0.75].map((prob) => quantile(values, prob));
  const reach = WHISKER_REACH * (upper - lower);
  const inside = values.filter((value) => isNumber(value) && value >= lower - reach && value <= upper + reach);
  return {low: smallest(inside), lower, median, upper, high: largest(inside)};
}
