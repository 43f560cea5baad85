package process

import (
	"slices"
	"strings"
)

// ownVariablePrefix are the variables of Drawbridge itself: a token, the URL of a store. They are for no server.
const ownVariablePrefix = "DRAWBRIDGE_"

// MountedVariable is the variable that every server finds in its environment: a Drawbridge that does was started by
// another, and would start itself again if it read the same configuration.
const MountedVariable = ownVariablePrefix + "MOUNTED"

// isSecretVariable are variables that are secrets, or lead to some, on most machines that have them. A server that is
// to have one is given it by its row. ZEPH_ is another gateway's, whose users have its variables still.
func isSecretVariable(name string) bool {
	switch name = strings.ToUpper(name); name {
	case "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET", "GCP_SERVICE_ACCOUNT_KEY",
		"GOOGLE_APPLICATION_CREDENTIALS", "DATABASE_URL", "REDIS_URL",
		"GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "NPM_TOKEN", "NODE_AUTH_TOKEN", "CARGO_REGISTRY_TOKEN",
		"DOCKER_PASSWORD", "VAULT_TOKEN", "SSH_AUTH_SOCK",
		"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "HF_TOKEN":
		return true
	}
	return strings.HasPrefix(name, ownVariablePrefix) || strings.HasPrefix(name, "ZEPH_")
}

// Environ makes the environment of a program out of ours and what its row adds: "name=value" each, the row's last. Of
// ours the program gets what every program needs to find itself (PATH, HOME, the locale, the directories for
// configuration and temporary files), or where inherit is set everything but known secrets; of the variables of
// Drawbridge only Mounted.
func Environ(parent, row []string, inherit bool) []string {
	env := make([]string, 0, len(row)+16)
	for _, v := range parent {
		name, _, _ := strings.Cut(v, "=")
		if isSecretVariable(name) || !inherit && !isBaseVariable(name) || hasVariable(row, name) {
			continue
		}
		env = append(env, v)
	}
	env = append(env, MountedVariable+"=1")
	return append(env, row...)
}

// isBaseVariable says whether a variable is in the base environment.
func isBaseVariable(name string) bool {
	name = canonicalName(name)
	return slices.Contains(baseNames, name) || strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_")
}

func hasVariable(env []string, name string) bool {
	return slices.ContainsFunc(env, func(v string) bool {
		n, _, _ := strings.Cut(v, "=")
		return canonicalName(n) == canonicalName(name)
	})
}

// lookupVariable finds a variable; of a name that is there twice the last counts.
func lookupVariable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if n, value, ok := strings.Cut(v, "="); ok && canonicalName(n) == name {
			return value
		}
	}
	return ""
}
