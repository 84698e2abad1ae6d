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
