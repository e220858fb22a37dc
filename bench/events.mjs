// The cost of publishing, compared with Boost.Signals2 in the same process: no, few and many subscribers, one
// and two publishing threads, and subscribers that come and go. CPU time of the publishing threads.
import { microBenchmarks } from './support/google_benchmark.mjs';
import { figure, median } from './support/figures.mjs';

const ROUNDS = 9;
const SUBSCRIBERS = [0, 1, 8, 64];

export async function run() {
  const filter = '^(BM_ByHandle|BM_ByHandleUnderChurn|BM_ByName|BM_Signal[A-Za-z]*)/';
  const measured = new Map(microBenchmarks(filter, ROUNDS).map(({ name, ...rest }) => [name.replace('/real_time', ''), rest]));
  const cost = (label, name, aims = {}) => {
    const { time, times } = measured.get(name);
    return figure(`events: ${label}`, time, 'CPU ns', { of: times, ...aims });
  };
  const figures = [];
  const compare = (label, ours, theirs, aims) => {
    const ratios = measured.get(theirs).times.map((time, i) => time / measured.get(ours).times[i]);
    figures.push(
      cost(label, ours, aims),
      cost(`${label}: Signals2`, theirs),
      figure(`events: ${label}: Signals2 to ours`, median(ratios), 'times', { least: 1, of: ratios }),
    );
  };
  for (const threads of [1, 2]) {
    const from = `${threads} thread${threads > 1 ? 's' : ''}`;
    for (const count of SUBSCRIBERS) {
      const where = `subscribers:${count}/threads:${threads}`;
      const label = count === 0 ? 'without a subscriber' : `to ${count} subscriber${count > 1 ? 's' : ''}`;
      compare(`publish ${label}, ${from}`, `BM_ByHandle/${where}`, `BM_Signal/${where}`, count === 0 ? { most: 2 } : {});
      figures.push(cost(`publish by name ${label}, ${from}`, `BM_ByName/${where}`));
    }
    figures.push(
      cost(`Signals2 without a subscriber, no event made, ${from}`, `BM_SignalWithoutMakingTheEvent/threads:${threads}`),
      cost(`Signals2 without a subscriber, empty() asked, ${from}`, `BM_SignalThatIsEmpty/threads:${threads}`),
    );
    const where = `UnderChurn/subscribers:8/threads:${threads}`;
    compare(`publish to 8 subscribers and one that comes and goes, ${from}`, `BM_ByHandle${where}`, `BM_Signal${where}`);
  }
  const { times: one } = measured.get('BM_ByHandle/subscribers:0/threads:1');
  const flat = measured.get('BM_ByHandle/subscribers:0/threads:2').times.map((time, i) => time / one[i]);
  figures.push(figure('events: publish without a subscriber, 2 threads to 1', median(flat), 'times', { most: 1.5, of: flat }));
  return figures;
}
