// Text cases: files of requests and expected responses. README.md describes the format.
import { readFileSync } from 'node:fs'
import { mismatch, parsePattern, substitute, textMismatch } from './pattern.mjs'
import { waitFor } from './wait.mjs'

const REQUEST = /^(GET|HEAD|PUT|POST|DELETE|COPY|PATCH|OPTIONS) (\S+) ?(.*)$/
const ANSWER = /^(eventually )?(\d{3})(?: (.*))?$/

/** Parses a file into cases: {title, line, steps: [{line, method, target, body, headers, answer}]}. */
export function readCases(file) {
  const cases = []
  let step
  let continued // the text that indented lines continue
  const lines = readFileSync(file, 'utf8').split('\n')
  lines.forEach((text, i) => {
    const fail = (what) => {
      throw new Error(`${file}:${i + 1}: ${what}: ${text}`)
    }
    const line = i + 1
    if (text === '' || text.startsWith('#')) return
    if (text.startsWith('=== ')) {
      cases.push({ title: text.slice(4), line, steps: [] })
      step = continued = undefined
      return
    }
    if (cases.length === 0) fail('a case begins with ===')
    if (text.startsWith('  ')) {
      if (!continued) fail('no line to continue')
      continued.object[continued.member] += '\n' + text.slice(2)
      return
    }
    const request = REQUEST.exec(text)
    if (request) {
      const [, method, target, body] = request
      step = { line, method, target, body, headers: [], answer: undefined }
      cases.at(-1).steps.push(step)
      continued = { object: step, member: 'body' }
      return
    }
    if (!step) fail('a request is missing')
    const answer = ANSWER.exec(text)
    if (answer) {
      if (step.answer) fail('a second answer')
      step.answer = { line, repeat: !!answer[1], status: Number(answer[2]), body: answer[3] ?? '', headers: [], rows: [] }
      continued = { object: step.answer, member: 'body' }
    } else if (text.startsWith('> ') && !step.answer) {
      step.headers.push(header(text) ?? fail('no header'))
    } else if (text.startsWith('< ') && step.answer) {
      step.answer.headers.push(header(text) ?? fail('no header'))
    } else if (/^[|=]/.test(text) && step.answer) {
      step.answer.rows.push({ text: text.slice(1).trim(), exact: text.startsWith('=') })
    } else {
      fail('neither a request nor an answer')
    }
  })
  for (const { steps } of cases) {
    for (const { line, answer } of steps) if (!answer) throw new Error(`${file}:${line}: expected response is missing`)
  }
  return cases
}

function header(text) {
  const found = /^[<>] ([A-Za-z0-9-]+):\s*(.*)$/.exec(text)
  return found && { name: found[1], value: found[2] }
}

// Returns the difference between a response and the expected one, or undefined.
function check(expected, answer, variables) {
  if (answer.status !== expected.status) return `the status is ${answer.status}, not ${expected.status}`
  for (const { name, value } of expected.headers) {
    const got = answer.headers[name.toLowerCase()]
    if (value === 'none') {
      if (got !== undefined) return `there is a header ${name}: ${got}`
    } else {
      const wrong = got === undefined ? `there is no header ${name}` : textMismatch(value, got, variables, name)
      if (wrong) return wrong
    }
  }
  if (expected.rows.length > 0) return checkRows(expected.rows, answer, variables)
  const body = expected.body.trim()
  if (body === '...') return undefined
  if (body === '') return answer.text === '' ? undefined : 'there is a body'
  return mismatch(parsePattern(body), answer.json, variables)
}

// A body of lines: each of JSON, or text; exact ones are text in any case.
function checkRows(rows, answer, variables) {
  const lines = answer.text.split('\n').map((line) => line.trimEnd())
  if (lines.at(-1) === '') lines.pop()
  for (const [i, { text: row, exact }] of rows.entries()) {
    if (row === '...') return undefined
    const where = `line ${i + 1}`
    if (i >= lines.length) return `there is no ${where}`
    const isJson = !exact && /^[{[]/.test(row)
    const wrong = isJson
      ? mismatch(parsePattern(row), JSON.parse(lines[i]), variables, where)
      : textMismatch(row, lines[i], variables, where)
    if (wrong) return wrong
  }
  return lines.length > rows.length ? `there are ${lines.length} lines, not ${rows.length}` : undefined
}

function send(client, step, variables) {
  const put = (text, encode) => substitute(text, variables, encode)
  const headers = {}
  for (const { name, value } of step.headers) {
    if (name === 'as') {
      const credentials = value === 'nobody' ? undefined : put(value)
      headers.Authorization = credentials && 'Basic ' + Buffer.from(credentials).toString('base64')
    } else {
      headers[name] = value === 'none' ? undefined : put(value)
    }
  }
  const inUrl = (value) => encodeURIComponent(value)
  const body = step.body === '' ? undefined : put(step.body)
  return client.request(step.method, put(step.target, inUrl), { body, headers })
}

/** Runs the steps of a case in order. {db} is a database of its own. */
export async function runCase(client, file, { steps }, database) {
  const variables = new Map()
  for (const step of JSON.parse(JSON.stringify(steps).replaceAll('{db}', database))) {
    const attempt = async () => {
      const answer = await send(client, step, variables)
      const captured = new Map(variables)
      let wrong
      try {
        wrong = check(step.answer, answer, captured)
      } catch (error) {
        wrong = error.message
      }
      if (!wrong) return captured
      throw new Error(
        `${file}:${step.answer.line}: ${wrong}\n` +
          `  ${step.method} ${step.target} ${step.body}\n  answers ${answer.status} ${answer.text.slice(0, 2000)}`
      )
    }
    const what = `${file}:${step.answer.line}`
    const captured = step.answer.repeat ? await waitFor(what, attempt) : await attempt()
    for (const [name, value] of captured) variables.set(name, value)
  }
}
