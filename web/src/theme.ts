// Light or dark: as the system, or as chosen. The choice is all that this page stores.
import { effect, signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'
const KEY = 'divan-theme'
const system = matchMedia('(prefers-color-scheme: dark)')
const systemIsDark = signal(system.matches)
system.addEventListener('change', () => (systemIsDark.value = system.matches))

export const theme = signal<Theme>((localStorage.getItem(KEY) as Theme | null) ?? 'system')
export const isDark = signal(false)

effect(() => {
  isDark.value = theme.value === 'dark' || (theme.value === 'system' && systemIsDark.value)
  document.documentElement.dataset.theme = isDark.value ? 'dark' : 'light'
  if (theme.value === 'system') localStorage.removeItem(KEY)
  else localStorage.setItem(KEY, theme.value)
})
