package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fencedlease/fencedlease/leader"
)

// A controller-runtime manager: leader.NewManager in place of ctrl.NewManager.
func ExampleNewManager() {
	mgr, _, err := leader.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		LeaderElectionID:              "payments",
		LeaderElectionNamespace:       "prod",
		LeaderElectionReleaseOnCancel: true,
	}, leader.Options{
		Seal: []leader.Target{{Resource: corev1.SchemeGroupVersion.WithResource("configmaps")}},
	})
	if err != nil {
		log.Fatal(err)
	}
	// Set up controllers as ever. What they write through mgr.GetClient() carries
	// the token of the term.
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err) // leader.IsFenced(err): another replica leads now
	}
}

// A client-go program that leads again and again, until it is told to end.
func ExampleElection_Run() {
	lead := func(config *rest.Config) error {
		election, err := leader.New(config, leader.Options{Namespace: "prod", Name: "payments"})
		if err != nil {
			return err
		}
		clients, err := kubernetes.NewForConfig(election.Config(config))
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		return election.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
			accounts := clients.CoreV1().ConfigMaps("prod")
			account, err := accounts.Get(ctx, "account-99", metav1.GetOptions{})
			if err != nil {
				return err
			}
			account.Data = map[string]string{"balance": "50000"}
			_, err = accounts.Update(ctx, account, metav1.UpdateOptions{})
			return err
		})
	}
	if err := lead(ctrl.GetConfigOrDie()); err != nil {
		log.Fatal(err)
	}
}

// An elector that the program has already. The term ends at once where the
// elector's own context would live on for up to RenewDeadline.
func ExampleElection_Lock() {
	election, err := leader.New(ctrl.GetConfigOrDie(), leader.Options{Namespace: "prod", Name: "payments"})
	if err != nil {
		log.Fatal(err)
	}
	leaderelection.RunOrDie(context.Background(), leaderelection.LeaderElectionConfig{
		Lock:          election.Lock(),
		LeaseDuration: leader.DefaultLeaseDuration,
		RenewDeadline: leader.DefaultRenewDeadline,
		RetryPeriod:   leader.DefaultRetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				term := election.Term()
				if term == nil {
					return // lost already
				}
				ctx, cancel := term.Context(ctx)
				defer cancel()
				<-ctx.Done() // the work
			},
			OnStoppedLeading: func() { log.Fatal("leads no more") },
		},
	})
}

// What to do with a write that came to nothing.
func ExampleIsFenced() {
	update := func(ctx context.Context, c client.Client, account *corev1.ConfigMap) error {
		err := c.Update(ctx, account)
		switch lost := (*leader.LostError)(nil); {
		case err == nil:
			return nil
		case errors.As(err, &lost):
			return fmt.Errorf("this process was the leader with token %s: %w", lost.Token, err)
		case leader.IsFenced(err):
			refused, _ := leader.RefusalOf(err)
			return fmt.Errorf("the current token is %s, of %s: %w", refused.Facts.Current, refused.Facts.Holder, err)
		default:
			return err // a conflict, for instance: read again, and try again
		}
	}
	_ = update
}

// Objects can be sealed at any time of a term, and again: it costs nothing for
// those that have the token.
func ExampleTerm_Seal() {
	work := func(ctx context.Context, term *leader.Term) error {
		return term.Seal(ctx, leader.Target{
			Resource: corev1.SchemeGroupVersion.WithResource("configmaps"),
			Selector: "app=payments",
		})
	}
	_ = work
}
