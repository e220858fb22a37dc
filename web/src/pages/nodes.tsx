import { NodeCharts } from '../components/history'
import { Head, Loaded, number, Table, Time } from '../components/basics'
import { bytes } from '../format'
import { useResource } from '../resource'
import { T } from '../texts'

export interface Membership {
  nodes: Record<string, {
    address?: string
    version: string
    started: number
    background: string[]
    load?: { cpu_cores: number; javascript_processes: number; requests_per_second: number; builds: number; memory_bytes: number; disk_total_bytes: number; disk_free_bytes: number }
  }>
}

export function Nodes() {
  const members = useResource<Membership>('/_membership', 2000)
  return (
    <>
      <Head title={T.nodes.title} />
      <NodeCharts />
      <Loaded of={members}>
        {({ nodes }) => (
          <Table label={T.nodes.title} columns={[T.common.node, T.nodes.address, T.nodes.version, T.nodes.started, number(T.nodes.cpu), number(T.nodes.memory), number(T.nodes.disk), number(T.nodes.requests), number(T.nodes.builds), T.nodes.work]}>
            {Object.entries(nodes).map(([name, { address, version, started, background, load }]) => (
              <tr key={name}>
                <td>{name}</td><td>{address}</td><td>{version}</td><td><Time ms={started} /></td>
                <td class="number">{load?.cpu_cores.toFixed(2)}</td><td class="number">{load && bytes(load.memory_bytes)}</td><td class="number">{load && bytes(load.disk_free_bytes)}</td><td class="number">{load?.requests_per_second.toFixed(1)}</td><td class="number">{load?.builds}</td>
                <td>{background.join(', ')}</td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
    </>
  )
}
