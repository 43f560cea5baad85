//go:build unix

package process

// baseNames are the variables of the base environment, beside LC_* and XDG_*.
var baseNames = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TERM", "SHELL", "TMPDIR", "TZ"}

// canonical is the form in which names are compared.
func canonical(name string) string { return name }
