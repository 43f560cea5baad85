package process

import "strings"

// baseNames are the names of the variables of Drawbridge's environment that every program gets, in addition to LC_* and
// XDG_*. Without the first few, programs do not start or do not find their own files.
var baseNames = []string{
	"SYSTEMROOT", "WINDIR", "SYSTEMDRIVE", "COMSPEC", "PATH", "PATHEXT", "TEMP", "TMP", "APPDATA",
	"LOCALAPPDATA", "USERPROFILE",
	"USERNAME", "HOMEDRIVE", "HOMEPATH", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432",
	"COMMONPROGRAMFILES",
	"ALLUSERSPROFILE", "PUBLIC", "OS", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "HOME", "LANG", "TERM", "TZ",
}

// canonicalName returns the form in which variable names are compared: Windows ignores case.
func canonicalName(name string) string { return strings.ToUpper(name) }
