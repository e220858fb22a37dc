// Of all names those that a variable asks for, by parts of them with commas between; all if it is not set.
export function chosen(variable, all) {
  const names = process.env[variable]?.split(',');
  return names ? all.filter((name) => names.some((one) => name.toLowerCase().includes(one.toLowerCase()))) : all;
}
