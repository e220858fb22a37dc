// The names that match a comma-separated list of substrings in an environment variable; all if it is not set.
export function chosen(variable, all) {
  const names = process.env[variable]?.split(',');
  return names ? all.filter((name) => names.some((one) => name.toLowerCase().includes(one.toLowerCase()))) : all;
}
