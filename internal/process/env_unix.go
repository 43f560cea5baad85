//go:build unix

package process

// baseNames are the variables of the base environment, in addition to LC_* and XDG_*.
var baseNames = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TERM", "SHELL", "TMPDIR", "TZ"}

// canonicalName returns the form in which names are compared.
func canonicalName(name string) string { return name }
