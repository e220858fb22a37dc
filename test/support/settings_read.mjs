// The settings that the server's sources read, found by a scan: calls of Config::get() and its variants.
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../divan', import.meta.url))
// The class itself, and the table, with which the settings are compared.
const skipped = ['base/config.cc', 'app/settings.cc', 'app/settings_table.cc']

const argument = String.raw`((?:[^(),;]|\([^()]*\))+)`
const reads = new RegExp(String.raw`(?:\bconfig_?(?:\.|->)get(?:_int|_number|_bool)?|(?:\.|->)get_(?:int|number|bool))\(\s*${argument},\s*${argument}[,)]`, 'g')

const last = (text, pattern) => [...text.matchAll(new RegExp(pattern, 'g'))].at(-1)

/** The values of an argument: a string, a constant, or a variable. Undefined if they are not found. */
function valuesOf(expression, before, source) {
  const string = /^"(.*)"$/.exec(expression)
  if (string) return [string[1]]
  const name = /^(?:\w+::)?(\w+)$/.exec(expression)?.[1]
  const constant = String.raw`constexpr (?:const char\*|std::string_view) ${name} = "([^"]*)"`
  const found = last(before, constant) ?? last(source.headers, constant)
  if (found) return [found[1]]
  // One of two strings.
  const choice = last(before, String.raw`const char\* ${name} = [^;]*\? "([^"]*)" : "([^"]*)"`)
  if (choice) return choice.slice(1)
  // A parameter of the function or lambda: the arguments of its calls. A parameter with a type is none.
  const [, lambda, called, parameters] = last(before, String.raw`(?:auto (\w+) = \[[^\]]*\]|\w+ (\w+))\(([^()]*\b${name}\b[^()]*)\)[^;{]*\{`) ?? []
  const index = parameters?.split(',').findIndex((parameter) => parameter.trim().endsWith(name))
  const calls = [...source.text.matchAll(new RegExp(String.raw`\b${lambda ?? called}\(([^()]*)\)`, 'g'))].map(([, list]) => list.split(',')[index]?.trim())
  const values = calls.filter((one) => one && !/\s/.test(one)).map((one) => valuesOf(one, '', source))
  return values.length > 0 && values.every(Boolean) ? values.flat() : undefined
}

/** {settings: ["section/key"], unknown: ["file: section, key"]}; `unknown` has the calls whose arguments are not found. */
export function settingsRead() {
  const names = readdirSync(root, { recursive: true }).filter((name) => /\.(cc|h)$/.test(name) && !/_(test|bench)\.cc$/.test(name) && !skipped.includes(name))
  const texts = new Map(names.map((name) => [name, readFileSync(path.join(root, name), 'utf8')]))
  const settings = new Set(), unknown = new Set()
  for (const [name, text] of texts) {
    const headers = names.filter((other) => other.endsWith('.h') && path.dirname(other) === path.dirname(name)).map((other) => texts.get(other)).join('\n')
    for (const { index, 1: section, 2: key } of text.matchAll(reads)) {
      const [sections, keys] = [section, key].map((one) => valuesOf(one, text.slice(0, index), { text, headers }))
      if (!sections || !keys) unknown.add(`${name}: ${section}, ${key}`)
      else for (const one of sections) for (const other of keys) settings.add(`${one}/${other}`)
    }
  }
  return { settings: [...settings].sort(), unknown: [...unknown].sort() }
}
