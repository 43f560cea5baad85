package store

import (
	"fmt"
	"strings"
	"time"
)

// SetClockAhead sets the store's clock ahead of the real one. It is called before the store is used.
func (db *DB) SetClockAhead(d time.Duration) {
	clock := db.dialect.keywords.Replace("CLOCK")
	db.dialect.keywords = strings.NewReplacer(
		"CLOCK", fmt.Sprintf("(%s + %d)", clock, d.Milliseconds()),
		"BLOB", db.dialect.keywords.Replace("BLOB"),
	)
	db.floor = clockFloor{}
}
