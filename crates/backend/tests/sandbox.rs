//! smoke
use fuse_backend::*;
use std::time::Instant;
#[tokio::main]
async fn smoke() {
    let dir = std::env::args().nth(1).unwrap();
    let b = Sandbox::new(&dir).unwrap();
    for i in 0..3 {
        let t = Instant::now();
        let id = EnvId::new(format!("e{i}")).unwrap();
        let g = b.create(EnvSpec::new(id.clone())).await;
        println!("create {:?} {:?}", t.elapsed(), g.as_ref().err());
        let Ok(g) = g else { return };
        for c in [
            "true",
            "true",
            "id; ls -la / /etc /root /home; cat /proc/1/root/etc/shadow; ps ax; mount; cat /proc/self/status | grep -E 'Cap|NoNew|Seccomp'; touch /usr/local/bin/x /usr/bin/y; ip a; df -h; env",
        ] {
            let t = Instant::now();
            let r = g
                .exec(ExecSpec::new(format!("c{:?}", t), Command::Shell(c.into())))
                .await;
            let e = t.elapsed();
            match r {
                Ok(o) => println!(
                    "{e:?} {} {} {}",
                    o.exit_code,
                    String::from_utf8_lossy(&o.stdout),
                    String::from_utf8_lossy(&o.stderr)
                ),
                Err(e) => println!("{e:?}"),
            }
        }
        println!("{:?}", g.status().await);
        let t = Instant::now();
        println!("destroy {:?} {:?}", b.destroy(&id).await, t.elapsed());
    }
}
fn main() {
    maybe_run_stage();
    smoke();
}
