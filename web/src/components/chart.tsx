// A line chart of times.
import { useLayoutEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { compact } from '../format'
import { isDark } from '../theme'

const HEIGHT = 170
const style = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

/** `times` in seconds since 1970, rising; each series has a value, or null, for each of them. */
export function Chart({ times, series, label, unit = compact }: { times: number[]; series: { name: string; values: (number | null)[] }[]; label: string; unit?: (value: number) => string }) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const dark = isDark.value
  const names = series.map(({ name }) => name).join('\n')
  useLayoutEffect(() => {
    const element = box.current!
    const axis: uPlot.Axis = { stroke: style('--muted'), grid: { stroke: style('--chart-grid'), width: 1 }, ticks: { show: false }, font: '12px system-ui' }
    const made = new uPlot(
      {
        width: element.clientWidth, height: HEIGHT, cursor: { points: { size: 6 }, drag: { x: false, y: false } }, legend: { show: names.includes('\n') },
        scales: { y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [axis, { ...axis, size: 46, values: (_, values) => values.map(unit) }],
        series: [{}, ...names.split('\n').map((name, i) => ({ label: name, stroke: style(`--chart-${i + 1}`), width: 2, points: { show: false }, ...(i === 0 && { fill: `${style('--chart-1')}22` }) }))],
      },
      [[], ...names.split('\n').map(() => [])],
      element,
    )
    plot.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT - (names.includes('\n') ? 30 : 0) }))
    resized.observe(element)
    return () => {
      resized.disconnect()
      made.destroy()
    }
  }, [dark, names])
  useLayoutEffect(() => plot.current?.setData([times, ...series.map(({ values }) => values)]), [times, series, dark])
  const last = series.map(({ name, values }) => `${name}: ${unit(values.at(-1) ?? 0)}`).join(', ')
  return <div class="chart" ref={box} role="img" aria-label={`${label}. ${last}`} />
}
