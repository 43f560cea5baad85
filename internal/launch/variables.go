package launch

import (
	"slices"
	"strings"
)

// IsBlockedVariable reports whether no row may set a variable, not even a row of the person who runs Drawbridge. Such a
// variable makes a loader, a shell or a language runtime load or run code that the row does not name. On Windows, the
// case of the name is ignored.
func IsBlockedVariable(name string) bool { return isBlockedName(name, onWindows) }

func isBlockedName(name string, fold bool) bool {
	if fold {
		name = strings.ToUpper(name)
	}
	switch {
	case slices.Contains(loaderVariables(), name):
		return true
	case strings.HasPrefix(name, "PYTHON"):
		return !slices.Contains(harmlessPythonVariables(), name)
	}
	return slices.ContainsFunc(loaderPrefixes(), func(p string) bool { return strings.HasPrefix(name, p) })
}

// loaderVariables returns the variables that determine which code programs load at start or run later. They are
// documented in the manuals of linkers, the C library, shells, languages and git.
func loaderVariables() []string {
	return []string{
		"GCONV_PATH", "GETCONF_DIR", "LOCPATH", "NLSPATH", "HOSTALIASES", "RESOLV_HOST_CONF", "MALLOC_TRACE",
		"BASH_ENV", "ENV", "CDPATH", "GLOBIGNORE", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "IFS", "ZDOTDIR",
		"FPATH", "KSH_ENV",
		"NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "BUN_OPTIONS", "BUN_INSPECT_PRELOAD",
		"RUBYLIB", "RUBYOPT", "PERL5LIB", "PERL5OPT", "PERL5DB", "PERLLIB", "PHPRC", "PHP_INI_SCAN_DIR", "LUA_INIT",
		"LUA_PATH", "LUA_CPATH", "R_PROFILE", "R_PROFILE_USER",
		"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "DOTNET_STARTUP_HOOKS", "CORECLR_PROFILER_PATH",
		"COR_PROFILER_PATH", "ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS",
		"GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR", "GIT_EXTERNAL_DIFF",
		"GIT_PAGER", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR",
		"GIT_PROXY_COMMAND", "GIT_SHELL_PATH", "GIT_CONFIG", "GIT_DIR", "GIT_COMMON_DIR",
		"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_ALLOW_PROTOCOL",
		"SSH_ASKPASS", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES",
	}
}

// loaderPrefixes returns the prefixes of the names of further variables that determine which code programs load or run.
func loaderPrefixes() []string {
	return []string{"LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG_", "GIT_TRACE"}
}

// harmlessPythonVariables returns the variables of Python that load no code. They affect text encoding, output and
// speed, and rows commonly set them.
func harmlessPythonVariables() []string {
	return []string{
		"PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONCOERCECLOCALE", "PYTHONLEGACYWINDOWSSTDIO",
		"PYTHONDONTWRITEBYTECODE",
		"PYTHONHASHSEED", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHONOPTIMIZE", "PYTHONFAULTHANDLER",
		"PYTHONASYNCIODEBUG", "PYTHONDEVMODE",
		"PYTHONTRACEMALLOC", "PYTHONMALLOC", "PYTHONINTMAXSTRDIGITS", "PYTHONNODEBUGRANGES", "PYTHON_COLORS",
		"PYTHON_GIL", "PYTHONVERBOSE", "PYTHONTZPATH",
	}
}

// isSteeringVariable reports whether a variable determines which programs or packages are found, or where requests are
// sent. A row may set such a variable, since there are legitimate uses. The person who approves the row sees a finding
// about it.
func isSteeringVariable(name string) bool {
	name = strings.ToUpper(name) // programs accept proxy variables, and npm its own, in either case
	switch {
	case slices.Contains(steeringVariables(), name):
		return true
	case slices.ContainsFunc(harmlessPrefixes(), func(p string) bool { return strings.HasPrefix(name, p) }):
		return false
	}
	return slices.ContainsFunc([]string{"NPM_CONFIG_", "UV_", "PIP_", "DOCKER_", "DENO_", "YARN_", "PNPM_",
		"BUN_CONFIG_"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

func steeringVariables() []string {
	return []string{
		"PATH", "PATHEXT", "COMSPEC", "HOME", "USERPROFILE", "SHELL", "EDITOR", "VISUAL", "PAGER", "MANPAGER",
		"BROWSER", "CLASSPATH", "TMPDIR",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY", "NODE_USE_ENV_PROXY",
		"NODE_TLS_REJECT_UNAUTHORIZED", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
		"CURL_CA_BUNDLE", "GIT_SSL_NO_VERIFY", "SSLKEYLOGFILE",
		"XDG_CONFIG_HOME", "XDG_DATA_HOME", "SSH_AUTH_SOCK",
	}
}

// harmlessPrefixes returns the prefixes of package manager variables that only set verbosity or timeouts.
func harmlessPrefixes() []string {
	return []string{"NPM_CONFIG_LOGLEVEL", "NPM_CONFIG_UPDATE_NOTIFIER", "NPM_CONFIG_FUND", "NPM_CONFIG_AUDIT",
		"UV_HTTP_TIMEOUT", "UV_NO_PROGRESS", "UV_LOG_CONTEXT", "PIP_DISABLE_PIP_VERSION_CHECK", "DENO_NO_UPDATE_CHECK"}
}
