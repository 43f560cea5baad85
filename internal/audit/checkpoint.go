package audit

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// A Checkpoint is a signed statement of the last record of a chain at a time. A later change of the chain would need a
// new signature.
type Checkpoint struct {
	Stream string
	// Seq is the number of the last record at that time, and Hash its hash.
	Seq  uint64
	Hash [32]byte
	At   time.Time
	// Signer is the public key, and Signature its Ed25519 signature of the other members.
	Signer, Signature []byte
}

// signedBytes returns the signed text: a line that names the format, Seq and the milliseconds of At since 1970 (eight
// bytes each, most significant first), Hash, and Stream.
func (c Checkpoint) signedBytes() []byte {
	text := []byte("drawbridge audit checkpoint 1\n")
	text = binary.BigEndian.AppendUint64(text, c.Seq)
	text = binary.BigEndian.AppendUint64(text, uint64(c.At.UnixMilli()))
	text = append(text, c.Hash[:]...)
	return append(text, c.Stream...)
}

// Sign returns the checkpoint with a signature.
func (c Checkpoint) Sign(key ed25519.PrivateKey) Checkpoint {
	c.Signer = key.Public().(ed25519.PublicKey)
	c.Signature = ed25519.Sign(key, c.signedBytes())
	return c
}

// Verify returns an error if the signature is not that of the signer.
func (c Checkpoint) Verify() error {
	if len(c.Signer) != ed25519.PublicKeySize || !ed25519.Verify(c.Signer, c.signedBytes(), c.Signature) {
		return fmt.Errorf("checkpoint at record %d: its signature is not its signer's", c.Seq)
	}
	return nil
}

// ParsePublicKey reads a public key as [FormatPublicKey] writes it.
func ParsePublicKey(text string) (ed25519.PublicKey, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != ed25519.PublicKeySize {
		return nil, errors.New("a public key is 64 hexadecimal digits")
	}
	return b, nil
}

// FormatPublicKey formats a public key for people.
func FormatPublicKey(key ed25519.PublicKey) string { return hex.EncodeToString(key) }
