// Figures and their format.

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function percentile(numbers, share) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length * share)];
}

// Three significant digits.
function shown(value) {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(3)));
}

// A measured value. `least` or `most` is its aim, if it has one; `of` are the runs that it is the median of.
export function figure(name, value, unit, { least, most, of } = {}) {
  return { name, value, unit, least, most, of };
}

export function table(figures) {
  const rows = figures.map(({ name, value, unit, least, most, of }) => {
    const aim = least !== undefined ? `≥ ${shown(least)}` : most !== undefined ? `≤ ${shown(most)}` : '';
    const met = least !== undefined ? value >= least : most !== undefined ? value <= most : undefined;
    const range = of && of.length > 1 ? `${shown(Math.min(...of))} … ${shown(Math.max(...of))}` : '';
    return [name, shown(value), unit, range, aim, met === undefined ? '' : met ? 'met' : 'NOT MET'];
  });
  const all = [['figure', 'median', 'unit', 'range', 'aim', ''], ...rows];
  const widths = all[0].map((_, i) => Math.max(...all.map((row) => row[i].length)));
  const right = [1, 3, 4];
  return all
    .map((row) => row.map((cell, i) => (right.includes(i) ? cell.padStart(widths[i]) : cell.padEnd(widths[i]))).join('  ').trimEnd())
    .join('\n');
}
