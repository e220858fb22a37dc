// A line chart of times.
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { compact, time } from '../format'
import { isDark } from '../theme'

const HEIGHT = 170
const style = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

export interface Line {
  name: string
  values: (number | null)[]
}

/** `times` in seconds since 1970, rising; each line has a value, or null, for each of them. The legend has those at the pointer, else the last. */
export function Chart({ times, lines, label, unit = compact }: { times: number[]; lines: Line[]; label: string; unit?: (value: number) => string }) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const [pointed, setPointed] = useState<number | null>(null)
  const dark = isDark.value
  const names = lines.map(({ name }) => name).join('\n')
  useLayoutEffect(() => {
    const element = box.current!
    const axis: uPlot.Axis = { stroke: style('--muted'), grid: { stroke: style('--chart-grid'), width: 1 }, ticks: { show: false }, font: '12px system-ui' }
    const made = new uPlot(
      {
        width: element.clientWidth, height: HEIGHT, padding: [null, 32, null, null], cursor: { points: { size: 6 }, drag: { x: false, y: false } }, legend: { show: false },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [{ ...axis, space: 90, size: 30, values: (_, values) => values.map((value) => time(value * 1000)) }, { ...axis, size: 60, values: (_, values) => values.map(unit) }],
        series: [{}, ...names.split('\n').map((name, i) => ({ label: name, stroke: style(`--chart-${i + 1}`), width: 2, points: { show: false }, ...(i === 0 && { fill: `${style('--chart-1')}22` }) }))],
        hooks: { setCursor: [({ cursor }) => setPointed(cursor.idx ?? null)] },
      },
      [[], ...names.split('\n').map(() => [])],
      element,
    )
    plot.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      made.destroy()
    }
  }, [dark, names])
  useLayoutEffect(() => plot.current?.setData([times, ...lines.map(({ values }) => values)]), [times, lines, dark])
  const at = pointed ?? times.length - 1
  const shown = lines.map(({ name, values }) => ({ name, value: values[at] == null ? '–' : unit(values[at]) }))
  return (
    <div class="chart">
      <div ref={box} role="img" aria-label={`${label}. ${shown.map(({ name, value }) => `${name}: ${value}`).join(', ')}`} />
      <p class="legend small" aria-hidden="true">{shown.map(({ name, value }, i) => <span key={name} class={`line-${i + 1}`}>{name} <b>{value}</b></span>)}<span class="muted">{time(times[at]! * 1000)}</span></p>
    </div>
  )
}
