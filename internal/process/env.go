package process

import (
	"slices"
	"strings"
)

// ownVariablePrefix is the prefix of Drawbridge's own variables, such as a token or the URL of a store. No server
// receives them.
const ownVariablePrefix = "DRAWBRIDGE_"

// MountedVariable is set in the environment of every server. A Drawbridge that finds it was started by another one, and
// would start itself again if it read the same configuration.
const MountedVariable = ownVariablePrefix + "MOUNTED"

// isSecretVariable reports whether a variable is commonly a secret, or leads to one. A server receives such a variable
// only if its row names it. ZEPH_ belongs to another gateway, whose users still have its variables set.
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

// Environ returns the environment of a program: "name=value" each, made of ours (parent) and the row's, which comes
// last. Of ours, the program gets the variables that most programs need (PATH, HOME, the locale, the directories for
// configuration and temporary files). With inherit it gets all but known secrets. Of Drawbridge's variables it gets
// only MountedVariable.
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

// isBaseVariable reports whether a variable is in the base environment.
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

// lookupVariable returns the value of a variable; the last one counts if the name is repeated.
func lookupVariable(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if n, value, ok := strings.Cut(v, "="); ok && canonicalName(n) == name {
			return value
		}
	}
	return ""
}
