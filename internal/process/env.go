package process

import (
	"slices"
	"strings"
)

// ownVariablePrefix is the prefix of the names of Drawbridge's own variables, such as a token or the URL of a store.
// Servers do not inherit these variables.
const ownVariablePrefix = "DRAWBRIDGE_"

// MountedVariable is set in the environment of every server. If Drawbridge finds it in its own environment, Drawbridge
// was started by another Drawbridge. If both mounted the servers of the same configuration, they would start each other
// without end.
const MountedVariable = ownVariablePrefix + "MOUNTED"

// isSecretVariable reports whether a variable usually contains a secret, or the location of a secret. A server receives
// such a variable only if its row sets it. The prefix ZEPH_ belongs to another gateway, whose users may still have its
// variables set.
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

// Environ returns the environment of a program as "name=value" strings. parent is Drawbridge's environment. row
// contains the variables that the server's row sets; they come last and replace variables of parent. From parent, the
// program gets the variables that most programs need (PATH, HOME, the locale, the directories for configuration and
// temporary files). With inherit, it gets all variables of parent except known secrets. Of Drawbridge's own variables
// it gets only MountedVariable.
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

// isBaseVariable reports whether every program gets a variable of Drawbridge's environment, even without inherit.
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

// lookupVariable returns the value of a variable. If the name is repeated, the last value counts.
func lookupVariable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if n, value, ok := strings.Cut(v, "="); ok && canonicalName(n) == name {
			return value
		}
	}
	return ""
}
