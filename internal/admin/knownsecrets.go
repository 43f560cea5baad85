package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/audit"
)

// KnownSecrets returns the values that must not be in a text for others: the secrets that the person stored, the secret
// values in the configuration of servers, the token of the HTTP endpoint, and the variables with the names of secrets.
// If one cannot be read, KnownSecrets returns an error and no values.
func (r *Service) KnownSecrets(ctx context.Context) ([]string, error) {
	values := secretVariables(r.o.Environ)
	list, err := r.ReadServers(ctx)
	if err != nil {
		return nil, err
	}
	values = append(values, gateway.ServerSecrets(slices.Concat(list.Servers, list.Shadowed))...)
	token, err := gateway.EndpointToken(r.o.Gateway, list.Settings)
	if err != nil {
		return nil, err
	}
	values = append(values, token)
	stored, err := r.Secrets()
	if err == nil {
		err = stored.Damage
	}
	if err != nil {
		return nil, fmt.Errorf("list the stored secrets: %w", err)
	}
	v, err := r.openVault()
	if err != nil {
		return nil, err
	}
	for _, s := range stored.Secrets {
		value, err := v.UserSecrets().Get(s.Name)
		if err != nil {
			return nil, fmt.Errorf("read the secret %s: %w", s.Name, err)
		}
		values = append(values, string(value))
	}
	return values, nil
}

// secretVariables returns the values of the variables of an environment whose names indicate a secret.
func secretVariables(environ []string) (values []string) {
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); audit.IsSecretName(name) {
			values = append(values, value)
		}
	}
	return values
}
