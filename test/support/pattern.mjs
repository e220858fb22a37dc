// Patterns for JSON, the expected responses of text cases. README.md describes them.
//
//   {"ok":true,"rev":$rev1}        members in any order, no others; $rev1 captures or is compared
//   {"ok":true,...}                further members may follow
//   [1,...,2]                      any elements in between
//   <rev>  "a <any> b"             a value, or a part of a string, of a kind

const KINDS = {
  any: { test: () => true, text: '[^]*' },
  rev: { test: isText(/^\d+-[0-9a-f]{32}$/), text: '\\d+-[0-9a-f]{32}' },
  seq: { test: isText(/^\d+-[0-9a-f]{24}$/), text: '\\d+-[0-9a-f]{24}' },
  uuid: { test: isText(/^[0-9a-f]{32}$/), text: '[0-9a-f]{32}' },
  string: { test: (value) => typeof value === 'string', text: '[^]+' },
  int: { test: (value) => Number.isInteger(value), text: '-?\\d+' },
  number: { test: (value) => typeof value === 'number', text: '-?[0-9.eE+-]+' },
  bool: { test: (value) => typeof value === 'boolean', text: 'true|false' },
  array: { test: Array.isArray },
  object: { test: (value) => value !== null && typeof value === 'object' && !Array.isArray(value) }
}

function isText(expression) {
  return (value) => typeof value === 'string' && expression.test(value)
}

// A variable's name determines what it captures: $rev2 a revision, $seq a sequence, any other name any value.
function kindOfVariable(name) {
  const kind = name.replace(/\d*$/, '')
  return Object.hasOwn(KINDS, kind) ? kind : 'any'
}

const PLACE = /<([a-z]+)>|\$([a-z]+\d*)/g

class Parser {
  constructor(text) {
    this.text = text
    this.at = 0
  }
  fail(what) {
    throw new Error(`${what} at: ${this.text.slice(this.at, this.at + 40)}`)
  }
  space() {
    while (/\s/.test(this.text[this.at] ?? '')) ++this.at
  }
  take(token) {
    this.space()
    if (!this.text.startsWith(token, this.at)) return false
    this.at += token.length
    return true
  }
  match(expression) {
    this.space()
    expression.lastIndex = this.at
    const found = expression.exec(this.text)
    if (found) this.at = expression.lastIndex
    return found
  }
  value() {
    if (this.take('{')) return this.object()
    if (this.take('[')) return this.array()
    const place = this.match(/<([a-z]+)>|\$([a-z]+\d*)/y)
    if (place) {
      if (place[1] && !Object.hasOwn(KINDS, place[1])) this.fail(`no kind <${place[1]}>`)
      return place[1] ? { kind: place[1] } : { variable: place[2] }
    }
    const token = this.match(/"(?:[^"\\]|\\.)*"|-?\d[0-9.eE+-]*|true|false|null/y)
    if (!token) this.fail('no value')
    const value = JSON.parse(token[0])
    if (typeof value === 'string' && value.search(PLACE) >= 0) return { template: value }
    return { literal: value }
  }
  object() {
    const members = new Map()
    let open = false
    while (!this.take('}')) {
      if (this.take('...')) {
        open = true
      } else {
        const name = this.match(/"(?:[^"\\]|\\.)*"/y)
        if (!name || !this.take(':')) this.fail('no member')
        members.set(JSON.parse(name[0]), this.value())
      }
      if (!this.take(',') && !this.text.slice(this.at).trimStart().startsWith('}')) this.fail('no comma')
    }
    return { members, open }
  }
  array() {
    const elements = []
    while (!this.take(']')) {
      elements.push(this.take('...') ? { gap: true } : this.value())
      if (!this.take(',') && !this.text.slice(this.at).trimStart().startsWith(']')) this.fail('no comma')
    }
    return { elements }
  }
}

export function parsePattern(text) {
  const parser = new Parser(text)
  const pattern = parser.value()
  parser.space()
  if (parser.at < text.length) parser.fail('something behind the value')
  return pattern
}

const shown = (value) => {
  const text = JSON.stringify(value)
  return text === undefined ? 'nothing' : text.length > 300 ? text.slice(0, 300) + '...' : text
}

/** Returns the difference from the pattern, or undefined. Variables are captured into `variables`. */
export function mismatch(pattern, value, variables, where = 'the body') {
  if (pattern.kind) {
    return KINDS[pattern.kind].test(value) ? undefined : `${where} is ${shown(value)}, not <${pattern.kind}>`
  }
  if (pattern.variable) {
    const name = pattern.variable
    if (variables.has(name)) {
      const known = variables.get(name)
      if (JSON.stringify(known) === JSON.stringify(value)) return undefined
      return `${where} is ${shown(value)}, but $${name} is ${shown(known)}`
    }
    const kind = kindOfVariable(name)
    if (!KINDS[kind].test(value)) return `${where} is ${shown(value)}, not <${kind}>`
    variables.set(name, value)
    return undefined
  }
  if (pattern.template !== undefined) {
    if (typeof value !== 'string') return `${where} is ${shown(value)}, not a string`
    return textMismatch(pattern.template, value, variables, where)
  }
  if (pattern.members) return objectMismatch(pattern, value, variables, where)
  if (pattern.elements) return arrayMismatch(pattern.elements, value, variables, where)
  const same = pattern.literal === value
  return same ? undefined : `${where} is ${shown(value)}, not ${shown(pattern.literal)}`
}

function objectMismatch(pattern, value, variables, where) {
  if (!KINDS.object.test(value)) return `${where} is ${shown(value)}, not an object`
  for (const [name, member] of pattern.members) {
    if (!Object.hasOwn(value, name)) return `${where} lacks "${name}": ${shown(value)}`
    const wrong = mismatch(member, value[name], variables, `${where}.${name}`)
    if (wrong) return wrong
  }
  if (pattern.open) return undefined
  const more = Object.keys(value).filter((name) => !pattern.members.has(name))
  return more.length > 0 ? `${where} has more: ${more.join(', ')} in ${shown(value)}` : undefined
}

function arrayMismatch(elements, value, variables, where) {
  if (!Array.isArray(value)) return `${where} is ${shown(value)}, not an array`
  let at = 0
  for (let i = 0; i < elements.length; ++i) {
    if (elements[i].gap) {
      if (i === elements.length - 1) return undefined
      while (at < value.length && mismatch(elements[i + 1], value[at], new Map(variables))) ++at
      continue
    }
    if (at >= value.length) return `${where} has only ${value.length} elements: ${shown(value)}`
    const wrong = mismatch(elements[i], value[at], variables, `${where}[${at}]`)
    if (wrong) return wrong
    ++at
  }
  return at < value.length ? `${where} has ${value.length} elements, not ${at}: ${shown(value)}` : undefined
}

/** The same for text: everything outside <kinds> and $variables is literal. */
export function textMismatch(template, text, variables, where = 'the text') {
  const captures = []
  let expression = ''
  let last = 0
  const literal = (part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  for (const place of template.matchAll(PLACE)) {
    expression += literal(template.slice(last, place.index))
    last = place.index + place[0].length
    const [, kind, variable] = place
    if (variable !== undefined && variables.has(variable)) {
      expression += literal(asText(variables.get(variable)))
    } else {
      expression += `(${KINDS[kind ?? kindOfVariable(variable)]?.text ?? '[^]*'})`
      captures.push(variable)
    }
  }
  expression += literal(template.slice(last))
  const found = new RegExp(`^${expression}$`).exec(text)
  if (!found) return `${where} is ${shown(text)}, not ${shown(template)}`
  captures.forEach((variable, i) => {
    if (variable !== undefined) variables.set(variable, found[i + 1])
  })
  return undefined
}

const asText = (value) => (typeof value === 'string' ? value : JSON.stringify(value))

/** Replaces the names of variables by their values. */
export function substitute(text, variables, encode = (value) => value) {
  return text.replace(/\$([a-z]+\d*)/g, (whole, name) =>
    variables.has(name) ? encode(asText(variables.get(name))) : whole
  )
}
