package secret

import (
	"github.com/drawbridge-mcp/drawbridge/roster"
	"github.com/drawbridge-mcp/drawbridge/secrets"
)

// A Keeper opens the vault when it is asked, and has what the person keeps there.
type Keeper struct {
	Vault func() (*secrets.Vault, error)
}

var _ roster.Keeper = Keeper{}

func (k Keeper) values() (secrets.Values, error) {
	v, err := k.Vault()
	if err != nil {
		return secrets.Values{}, err
	}
	return v.Values(), nil
}

// Get gives a value, as secrets.Values does.
func (k Keeper) Get(name string) ([]byte, error) {
	values, err := k.values()
	if err != nil {
		return nil, err
	}
	return values.Get(name)
}

// Put keeps a value.
func (k Keeper) Put(name string, value []byte) error {
	values, err := k.values()
	if err != nil {
		return err
	}
	return values.Put(name, value)
}

// Delete takes a value away.
func (k Keeper) Delete(name string) error {
	values, err := k.values()
	if err != nil {
		return err
	}
	return values.Delete(name)
}

// Lookup is Get for those to whom a value that cannot be had is none.
func (k Keeper) Lookup(name string) (string, bool) {
	value, err := k.Get(name)
	return string(value), err == nil
}
