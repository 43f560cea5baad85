//go:build unix

package process

// baseNames are the variables of the base environment, beside LC_* and XDG_*.
var baseNames = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TERM", "SHELL", "TMPDIR", "TZ"}

// canonicalName is the form in which names are compared.
func canonicalName(name string) string { return name }
