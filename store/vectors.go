package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/index"
	"github.com/drawbridge-mcp/drawbridge/store/pgvector"
	"github.com/drawbridge-mcp/drawbridge/store/postgres"
	"github.com/drawbridge-mcp/drawbridge/store/qdrant"
	"github.com/drawbridge-mcp/drawbridge/store/vector"
)

const (
	// DefaultCollection is what vectors are kept under in a place that has others too.
	DefaultCollection = "drawbridge_tools"
	// DefaultAnswer is how long a search waits for a place elsewhere.
	DefaultAnswer = 2 * time.Second
	// keepTimeout is how long reading and keeping many may take: nobody waits for it.
	keepTimeout = time.Minute
	// checkTimeout is how long a place may take to say that it is there.
	checkTimeout = 10 * time.Second
	// rest is how long a place is not asked again that did not answer.
	rest = 5 * time.Second
)

// VectorOptions are what a keeper of vectors can do without. The zero value works.
type VectorOptions struct {
	// Collection names the table of Postgres, and begins the names of Qdrant's collections; empty is DefaultCollection.
	Collection string
	// Answer is how long a search waits; 0 is DefaultAnswer.
	Answer time.Duration
	// TLS is for qdrants:// URLs; nil trusts whom the system trusts.
	TLS *tls.Config
}

// Vectors keeps vectors somewhere: in the store, or elsewhere. It gives what it keeps at the length 1. A place elsewhere that
// does not answer is an error soon, and for a moment at once, until it is asked again. Errors are *drawbridge.Fault values,
// kind Backend, that name the place and hold none of its secrets.
type Vectors struct {
	name  string
	place place
	// fault says what an error of the place means.
	fault  func(err error) (code drawbridge.FaultCode, next string)
	answer time.Duration
	// rest is how long it is not asked again.
	rest time.Duration

	// mu guards what follows: until when it rests, and why.
	mu    sync.Mutex
	until time.Time
	why   error
}

var (
	_ index.Vectors   = (*Vectors)(nil)
	_ index.Forgetter = (*Vectors)(nil)
)

// A place is where vectors are. Keys come in order, each once, and at least one; vectors at the length 1, and of one dimension.
type place interface {
	Have(ctx context.Context, model string, keys []index.Key) (map[index.Key][]float32, error)
	Keep(ctx context.Context, model string, dimension int, keys []index.Key, vectors map[index.Key][]float32) error
	Nearest(ctx context.Context, model string, question []float32, most int, among []index.Key) ([]index.Near, error)
	// Forget lets go of a model's vectors and its dimension.
	Forget(ctx context.Context, model string) error
	overseen
}

// overseen is a place as those see it who only look whether it is there.
type overseen interface {
	// Check says whether it answers.
	Check(ctx context.Context) error
	Close() error
}

// Vectors keeps vectors in the store. What closes it leaves the store open.
func (db *DB) Vectors() *Vectors {
	return &Vectors{name: db.name, place: own{db, mostVectors}, fault: db.dialect.fault, answer: keepTimeout}
}

// OpenVectors gives the keeper at a URL: postgres:// is a database with pgvector, qdrant:// and qdrants:// are a Qdrant server,
// by its gRPC port, without and with TLS. Nothing is connected to before it is asked. Code InvalidInput means the URL.
func OpenVectors(location string, o VectorOptions) (*Vectors, error) {
	collection := cmp.Or(o.Collection, DefaultCollection)
	v := &Vectors{answer: cmp.Or(o.Answer, DefaultAnswer), rest: rest}
	err := vector.CheckCollection(collection)
	if err == nil {
		location, err = lowerScheme(location, places)
	}
	switch {
	case err != nil:
	case strings.HasPrefix(location, "postgres"):
		v.fault = pgvectorFault
		v.place, v.name, err = pgvector.Open(location, collection)
	default:
		v.fault = qdrant.Fault
		v.place, v.name, err = qdrant.Open(location, collection, o.TLS)
	}
	if err != nil {
		return nil, &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: "open the vector store", Err: err,
			Next: "write postgres://user:password@host:5432/database, qdrant://host:6334 or qdrants://KEY@host:6334",
		}
	}
	return v, nil
}

// pgvectorFault is postgresFault for a database whose extension may be missing.
func pgvectorFault(err error) (code drawbridge.FaultCode, next string) {
	if errors.Is(err, pgvector.ErrNoExtension) {
		return drawbridge.InvalidInput, "install pgvector on the server, and have its administrator run CREATE EXTENSION vector in the database"
	}
	return postgresFault(err)
}

// Name is where the vectors are, for people: it holds no password.
func (v *Vectors) Name() string { return v.name }

// Have implements [index.Vectors].
func (v *Vectors) Have(ctx context.Context, model string, keys []index.Key) (all map[index.Key][]float32, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	err = v.do(ctx, "read vectors", max(v.answer, keepTimeout), func(ctx context.Context) (err error) {
		all, err = v.place.Have(ctx, model, vector.Keys(keys))
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Keep implements [index.Vectors]. Code InvalidInput means vectors of another dimension than the model's others, one without a
// direction, or more than the place takes at once.
func (v *Vectors) Keep(ctx context.Context, model string, vectors map[index.Key][]float32) error {
	if len(vectors) == 0 {
		return nil
	}
	const step = "keep vectors"
	units := make(map[index.Key][]float32, len(vectors))
	keys := make([]index.Key, 0, len(vectors))
	dimension := 0
	for key, one := range vectors {
		unit, err := vector.Unit(one)
		if err == nil && dimension != 0 && dimension != len(unit) {
			err = fmt.Errorf("the vectors that came of the model %q have %d and %d numbers", model, min(dimension, len(unit)), max(dimension, len(unit)))
		}
		if err != nil {
			return v.refusal(step, drawbridge.InvalidInput, err)
		}
		units[key], dimension = unit, len(unit)
		keys = append(keys, key)
	}
	return v.do(ctx, step, max(v.answer, keepTimeout), func(ctx context.Context) error {
		return v.place.Keep(ctx, model, dimension, vector.Keys(keys), units)
	})
}

// Nearest implements [index.Vectors]. Code InvalidInput means a question of another dimension than the model's vectors, or one
// without a direction.
func (v *Vectors) Nearest(ctx context.Context, model string, question []float32, most int, among []index.Key) (near []index.Near, err error) {
	if most <= 0 || len(among) == 0 {
		return nil, nil
	}
	const step = "find the nearest vectors"
	unit, err := vector.Unit(question)
	if err != nil {
		return nil, v.refusal(step, drawbridge.InvalidInput, err)
	}
	err = v.do(ctx, step, v.answer, func(ctx context.Context) (err error) {
		near, err = v.place.Nearest(ctx, model, unit, most, vector.Keys(among))
		return err
	})
	if err != nil {
		return nil, err
	}
	return near, nil
}

// Forget implements [index.Forgetter]. Vectors of another dimension may be kept of the model then.
func (v *Vectors) Forget(ctx context.Context, model string) error {
	return v.do(ctx, "forget vectors", max(v.answer, keepTimeout), func(ctx context.Context) error {
		return v.place.Forget(ctx, model)
	})
}

// Check says whether the place answers, and what is wrong if it does not.
func (v *Vectors) Check(ctx context.Context) error {
	v.awake(nil)
	return v.do(ctx, "ask", max(v.answer, checkTimeout), v.place.Check)
}

// Close closes the keeper. It waits for what is going on.
func (v *Vectors) Close() error {
	if err := v.place.Close(); err != nil {
		return v.refusal("close", drawbridge.ServerError, err)
	}
	return nil
}

// do does work, unless the place rests.
func (v *Vectors) do(ctx context.Context, step string, most time.Duration, work func(context.Context) error) error {
	if why := v.resting(); why != nil {
		return v.refusal(step, drawbridge.Transient, why)
	}
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := work(limited)
	if err == nil {
		v.awake(nil)
		return nil
	}
	f, isFault := errors.AsType[*drawbridge.Fault](err)
	wrong, isWrong := errors.AsType[*vector.DimensionError](err)
	switch {
	case ctx.Err() != nil:
		return v.refusal(step, drawbridge.Transient, err) // who asked gave up: that says nothing of the place
	case limited.Err() != nil:
		f = v.refusal(step, drawbridge.Transient, fmt.Errorf("no answer within %s", most))
		f.Next = "see that the server runs and can be reached"
	case errors.Is(err, vector.ErrTooMany):
		f = v.refusal(step, drawbridge.InvalidInput, err)
	case isWrong:
		f = v.refusal(step, drawbridge.InvalidInput, wrong)
		f.Next = "name the model otherwise, or keep its vectors under another collection"
	case !isFault:
		f = v.refusal(step, drawbridge.ServerError, err)
		f.Code, f.Next = v.fault(err)
	}
	if f.Code == drawbridge.Transient || f.Code == drawbridge.RateLimited {
		v.awake(f.Err)
	}
	return f
}

// resting says why the place is not to be asked now; nil if it may be. After its rest one asks, and the others hear what came
// of it.
func (v *Vectors) resting() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	if v.why != nil && now.Before(v.until) {
		return v.why
	}
	v.until = now.Add(v.rest)
	return nil
}

// awake notes how the place answered: an error sends it to rest.
func (v *Vectors) awake(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.why = nil
	if err != nil && v.rest > 0 {
		v.why, v.until = err, time.Now().Add(v.rest)
	}
}

func (v *Vectors) refusal(step string, code drawbridge.FaultCode, err error) *drawbridge.Fault {
	return &drawbridge.Fault{Kind: drawbridge.Backend, Code: code, Step: fmt.Sprintf("vector store %s: %s", v.name, step), Err: postgres.Plain(err)}
}
