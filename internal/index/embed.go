package index

import (
	"context"
	"crypto/sha256"
)

// An EmbedRole is the role of a text to embed: many models embed a question differently from its answer.
type EmbedRole uint8

// The roles of a text.
const (
	// RoleQuery is a question, Offered what may answer it.
	RoleQuery EmbedRole = iota + 1
	RoleDocument
)

// An Embedder turns texts into vectors that are near each other if the texts have a similar meaning. It may be used
// from several goroutines.
type Embedder interface {
	// Model names the space that its vectors are of: those of two names are never compared. It is the same in every
	// process.
	Model() string
	// Embed returns a vector for each text, in their order, all of one dimension. Their lengths say nothing: vectors
	// are compared by the cosine between them. An error means that none was made.
	Embed(ctx context.Context, of EmbedRole, texts []string) ([][]float32, error)
}

// A TextKey tells texts apart that are embedded: it is the SHA-256 of the text.
type TextKey [sha256.Size]byte

// TextKeyOf returns the key of a text.
func TextKeyOf(text string) TextKey { return sha256.Sum256([]byte(text)) }

// A Neighbor is a text that lies near to a question, with the cosine between the two.
type Neighbor struct {
	Key    TextKey
	Cosine float32
}

// VectorStore keeps the vectors of texts by model and key, so that none is made twice, in whatever process. It may be
// used from several goroutines.
type VectorStore interface {
	// Get returns those of the vectors that are kept.
	Get(ctx context.Context, model string, keys []TextKey) (map[TextKey][]float32, error)
	// Put keeps vectors, all or none. What is there already stays.
	Put(ctx context.Context, model string, vectors map[TextKey][]float32) error
	// Nearest returns at most so many of the keys whose vectors lie nearest to the question's, the nearest first; of
	// equals the key that comes first. Keys that have no vector are left out.
	Nearest(ctx context.Context, model string, question []float32, most int, among []TextKey) ([]Neighbor, error)
}
