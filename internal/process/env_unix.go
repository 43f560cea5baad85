//go:build unix

package process

// baseNames are the names of the variables of Drawbridge's environment that every program gets, in addition to LC_* and
// XDG_*.
var baseNames = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "TERM", "SHELL", "TMPDIR", "TZ"}

// canonicalName returns the form in which variable names are compared: the name itself.
func canonicalName(name string) string { return name }
