// Who is logged in, by a cookie that scripts cannot read.
import { effect, signal } from '@preact/signals'
import { get, isConnected, request, unauthorized } from './api'

export interface User {
  name: string | null
  roles: string[]
}

/** Undefined until it is known. */
export const user = signal<User | undefined>(undefined)
export const isAdmin = () => user.value?.roles.includes('_admin') ?? false

export interface Security {
  admins?: { names?: string[]; roles?: string[] }
  members?: { names?: string[]; roles?: string[] }
}
/** Whether the user may write design documents of a database, and change its permissions. */
export const isAdminOf = ({ admins }: Security) => isAdmin() || (admins?.names?.includes(user.value?.name ?? '') ?? false) || (admins?.roles?.some((role) => user.value?.roles.includes(role)) ?? false)

export async function loadSession(): Promise<void> {
  const { userCtx } = await get<{ userCtx: User }>('/_session')
  user.value = userCtx
}

export async function login(name: string, password: string): Promise<void> {
  await request('POST', '/_session', { name, password })
  await loadSession()
}

export async function logout(): Promise<void> {
  await request('DELETE', '/_session')
  user.value = { name: null, roles: [] }
}

const PAUSE = 1000
/** Until there is a response. Most pages request something again and again, but not all. */
async function reconnect(): Promise<void> {
  while (!isConnected.value) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE))
    if (!document.hidden) await loadSession().catch(() => {})
  }
}
let reconnects = false
effect(() => {
  if (isConnected.value || reconnects || !user.peek()) return
  reconnects = true
  void reconnect().finally(() => (reconnects = false))
})

// The session may have ended.
effect(() => {
  if (unauthorized.value > 0 && user.peek()?.name) void loadSession().catch(() => {})
})
